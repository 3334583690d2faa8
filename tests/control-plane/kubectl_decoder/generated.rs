//! Random scalars, and documents with a scalar in every position.

/// Scalars whose interpretation differs between versions of YAML, and seeds of others.
const SCALARS: [&str; 64] = [
    "y",
    "Yes",
    "NO",
    "on",
    "oFF",
    "true",
    "False",
    "nULL",
    "Null",
    "~",
    "",
    "0",
    "-0",
    "0644",
    "08",
    "0o17",
    "0x1F",
    "0b101",
    "-0b1",
    "0b-1",
    "1_000",
    "1__0",
    "_1",
    "1e3",
    "1E+3",
    "123e4567",
    "1e400",
    "-1e400",
    "1e-400",
    ".5",
    "-.5",
    "+.5e3",
    "5.",
    ".inf",
    "-.Inf",
    "+.INF",
    ".nan",
    ".",
    "..",
    "-",
    "+",
    "<<",
    "=",
    "1:30",
    "190:20:30",
    "2001-01-01",
    "2001-1-1t1:2:3Z",
    "12345678901234567890",
    "-9223372036854775809",
    "18446744073709551616",
    "9223372036854775807",
    "0xFFFFFFFFFFFFFFFFF",
    "1.0",
    "1e6",
    "0.00001",
    "123456789.5",
    "1e39",
    "1,000",
    "a b",
    "a: b",
    "# c",
    "a #b",
    "\u{e9}",
    "1.2.3",
];
/// The characters of numbers and other words that are not strings.
const ALPHABET: &[u8] = b"0011223456789__++--..eeEExXoObBaAfFnNyYtTuUlLsSiI:~<=,";
/// Characters that make strings difficult to write.
const DIFFICULT: [char; 28] = [
    ' ',
    '\n',
    '\t',
    '\r',
    '\'',
    '"',
    '\\',
    ':',
    '#',
    '-',
    '?',
    '[',
    ']',
    '{',
    '}',
    ',',
    '&',
    '*',
    '!',
    '|',
    '>',
    '%',
    '@',
    '`',
    '\u{85}',
    '\u{2028}',
    '\u{feff}',
    '\u{1f600}',
];
const TAGS: [&str; 9] =
    ["!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!", "!x"];

/// A generator of numbers from a seed (SplitMix64).
pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below the limit")
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns the text of a scalar in one line.
    pub(super) fn scalar(&mut self) -> String {
        let mut text = match self.below(3) {
            0 => return self.one(&SCALARS).to_owned(),
            1 => self.one(&SCALARS).to_owned(),
            _ => String::new(),
        };
        for _ in 0..=self.below(6) {
            let byte = char::from(self.one(ALPHABET));
            let at = self.below(text.chars().count() + 1);
            let at = text.char_indices().nth(at).map_or(text.len(), |(index, _)| index);
            text.insert(at, byte);
        }
        text
    }

    /// Returns a string for a value, which may have several lines.
    pub(super) fn string(&mut self) -> String {
        let mut text = if self.below(2) == 0 { self.scalar() } else { String::new() };
        for _ in 0..self.below(6) {
            match self.below(3) {
                0 => text.push_str(&self.scalar()),
                1 => text.push('a'),
                _ => text.push(self.one(&DIFFICULT)),
            }
        }
        text
    }

    /// Returns a document with a scalar in some position.
    pub(super) fn document(&mut self) -> String {
        let scalar = self.scalar();
        let scalar = match self.below(12) {
            0 => format!("'{}'", scalar.replace('\'', "''")),
            1 => format!("\"{scalar}\""),
            2 => format!("{} {scalar}", self.one(&TAGS)),
            3 => format!("{} '{scalar}'", self.one(&TAGS)),
            4 => format!("&x {scalar}"),
            _ => scalar,
        };
        let other = self.scalar();
        match self.below(14) {
            0 => format!("a: {scalar}\n"),
            1 => format!("{scalar}: a\n"),
            2 => format!("- {scalar}\n- {other}\n"),
            3 => format!("a: [{scalar}, {other}]\n"),
            4 => format!("a: {{{scalar}: b}}\n"),
            5 => format!("a: {{b: {scalar}}}\n"),
            6 => format!("? {scalar}\n: {other}\n"),
            7 => format!("{scalar}: a\n{other}: b\n"),
            8 => format!("a: &a {{b: {scalar}, c: 1}}\nd: {{b: {other}, <<: *a}}\n"),
            9 => format!("a: &a {{{scalar}: 1}}\nd: {{<<: *a, {other}: 2}}\n"),
            10 => format!("a: &a {scalar}\nb: *a\n*a : c\n"),
            11 => format!("a: |\n  {scalar}\n  {other}\nb: >-\n  {other}\n\n  {scalar}\n"),
            12 => format!("a: {scalar}\n  {other}\nb: '{other}\n\n  c'\n"),
            _ => {
                format!("metadata: {{labels: {{a: {scalar}}}}}\nspec:\n  selector:\n    {other}: {scalar}\n")
            }
        }
    }

    /// Returns a Deployment with scalars in its labels, environment and probe.
    pub(super) fn workload(&mut self) -> String {
        let scalars: Vec<String> = (0..6).map(|_| self.scalar()).collect();
        let [key, label, name, value, path, port] = scalars.as_slice() else { return String::new() };
        let quoted = serde_json::to_string(&self.string()).expect("a string is JSON");
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: shop}}\nspec:\n  selector:\n    matchLabels:\n      {key}: {label}\n  template:\n    metadata:\n      labels:\n        {key}: {label}\n      annotations:\n        a: {quoted}\n    spec:\n      containers:\n      - name: shop\n        image: shop\n        env:\n        - name: {name}\n          value: {value}\n        args: [{quoted}]\n        livenessProbe:\n          httpGet:\n            path: {path}\n            port: {port}\n"
        )
    }
}
