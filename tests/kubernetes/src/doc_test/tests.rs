mod kubernetes;

use std::fs;

use super::*;

#[test]
fn blocks_are_read_with_their_output() {
    let page = "\
# Page

```sh
one
two
```

```text
1
```

- in a list:

  ```sh elsewhere
  three
    more
  ```
";
    let block = |line, script: &str, mark: &str, expected_output: Option<&str>| Block {
        line,
        script: script.to_owned(),
        mark: mark.to_owned(),
        expected_output: expected_output.map(str::to_owned),
    };
    let expected = [block(4, "one\ntwo\n", "", Some("1\n")), block(15, "three\n  more\n", "elsewhere", None)];
    assert_eq!(blocks(page).as_deref(), Ok(&expected[..]));
}

#[test]
fn a_block_without_a_check_is_an_error() {
    let cases = [
        ("```yaml\na: 1\n```\n", "line 2: unsupported language \"yaml\" of a block"),
        ("```\nkubectl\n```\n", "line 2: unsupported language \"\" of a block"),
        ("```text\nx\n```\n", "line 2: a text block without a command before it"),
        (
            "```sh\nx\n```\nand it prints\n```text\ny\n```\n",
            "line 6: a text block without a command before it",
        ),
        (
            "```sh\nx\n```\n```text\ny\n```\n```text\nz\n```\n",
            "line 8: a text block without a command before it",
        ),
        ("```sh\nx\n", "line 1: a block without an end"),
    ];
    for (page, error) in cases {
        assert_eq!(blocks(page), Err(error.to_owned()), "{page}");
    }
}

#[test]
fn inline_code_outside_of_blocks_is_found() {
    assert_eq!(inline("a `b` c\n```sh\necho `x`\n```\n`d e`"), ["b", "d e"]);
}

#[test]
fn expected_output_matches_printed_output() {
    let cases = [
        ("", ""),
        ("a\nb\n", "a\nb\n"),
        ("a  b\n", "a b   \n\n"),
        ("NAME  …  2/2  Running  0  …\n", "NAME  web-1-2   2/2   Running   0   12s\n"),
        ("…", "anything at all"),
        ("a…", "a"),
        ("a\n…\nd\n", "a\nd\n"),
        ("a\n…\nd\n", "a\nb\nd\nc\nd\n"),
        ("…\nb: …\n…", "a\nb: 1\nc\n"),
        ("…a…b…", "xayabz"),
    ];
    for (shown, output) in cases {
        assert_eq!(difference(shown, output), None, "{shown:?} {output:?}");
    }
}

#[test]
fn a_mismatch_names_the_line() {
    let cases = [
        ("a\nb\n", "a\n", "missing line: b"),
        ("a\n", "a\nb\n", "more output than the page shows"),
        ("a\n", "", "missing line: a"),
        ("", "a", "more output than the page shows"),
        ("status 502 …\n", "status 503 (x3)\n", "missing line: status 502 …"),
        ("a\n…\nd\n", "a\nb\nc\n", "missing line: d"),
        ("…a…b", "xayabz", "missing line: …a…b"),
        ("…\nb\n…\nz\n", "a\nb\nb\nc\n", "missing line: z"),
    ];
    for (shown, output, missing) in cases {
        assert_eq!(difference(shown, output), Some(format!("{missing}\nprinted:\n{output}")));
    }
}

/// Runs the block of a page and returns the first line of the error.
fn run(name: &str, page: &str) -> Result<(), String> {
    let folder = kit::envoy::folder(name);
    let environment = vec![("WHO".to_owned(), "you".into())];
    let scripts = Scripts { folder: folder.clone(), logs: folder, environment };
    let first_line = |error: String| error.lines().next().unwrap_or_default().to_owned();
    blocks(page)?.iter().try_for_each(|block| scripts.run(block)).map_err(first_line)
}

#[test]
fn a_page_is_executed() {
    let page = "
```sh
pwd >here
echo hello $WHO
echo error >&2
```

```text
hello you
error
```

```sh
test \"$(cat here)\" = \"$PWD\"
```
";
    assert_eq!(run("doc_test-right", page), Ok(()));
    let log = kit::envoy::folder("doc_test-right").join("line-3.log");
    assert_eq!(fs::read_to_string(log).ok().as_deref(), Some("hello you\nerror\n"));
}

#[test]
fn a_wrong_page_is_detected() {
    let cases = [
        ("```sh\necho 503\n```\n```text\n502\n```\n", "line 2: missing line: 502"),
        ("```sh\necho 502; echo 503\n```\n```text\n502\n```\n", "line 2: more output than the page shows"),
        ("```sh\nfalse\ntrue\n```\n", "line 2: exit status: 1"),
        ("```sh\necho $NOT_SET\n```\n", "line 2: exit status: 2"),
        ("```sh\nno-such-command\n```\n", "line 2: exit status: 127"),
    ];
    for (page, error) in cases {
        assert_eq!(run("doc_test-wrong", page), Err(error.to_owned()), "{page}");
    }
}
