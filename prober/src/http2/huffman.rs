//! The Huffman code of HPACK (RFC 7541, appendix B), which is canonical: codes of one length are
//! consecutive numbers, so that a code follows from its length and its place among the symbols.

/// All symbols, sorted by the length of their code and then by the code.
#[rustfmt::skip]
const SYMBOLS: [u8; 256] = [
    48, 49, 50, 97, 99, 101, 105, 111, 115, 116, 32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57, 61, 65, 95,
    98, 100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77,
    78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89, 106, 107, 113, 118, 119, 120, 121, 122, 38, 42, 44, 59, 88,
    90, 33, 34, 40, 41, 63, 39, 43, 124, 35, 62, 0, 36, 64, 91, 93, 126, 94, 125, 60, 96, 123, 92, 195, 208,
    128, 130, 131, 162, 184, 194, 224, 226, 153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230,
    129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190,
    196, 198, 228, 232, 233, 1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158,
    165, 166, 168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239, 9, 142, 144, 145, 148, 159, 171, 206,
    215, 225, 236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242,
    243, 255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254,
    2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127,
    220, 249, 10, 13, 22,
];
/// The number of symbols with a code of each length.
#[rustfmt::skip]
const COUNTS: [u16; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 3,
];

/// Decodes a string. Returns `None` if it contains the end-of-string symbol, or ends with anything but
/// less than eight bits of that symbol.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() * 8 / 5);
    let mut place = Place::START;
    for byte in bytes {
        for bit in (0..8).rev() {
            let bit = byte >> bit & 1;
            place = match place.next(bit == 1)? {
                Next::Symbol(symbol) => {
                    out.push(symbol);
                    Place::START
                }
                Next::Place(place) => place,
            };
        }
    }
    (place.length < 8 && place.is_all_ones).then_some(out)
}

/// A place within a code.
#[derive(Clone, Copy)]
struct Place {
    length: usize,
    code: u32,
    /// The first code of this length.
    first: u32,
    /// The place of its symbol in [`SYMBOLS`].
    index: usize,
    is_all_ones: bool,
}

enum Next {
    Symbol(u8),
    Place(Place),
}

impl Place {
    const START: Self = Self { length: 0, code: 0, first: 0, index: 0, is_all_ones: true };

    /// Returns `None` after the longest code, which only the end-of-string symbol has.
    fn next(self, bit: bool) -> Option<Next> {
        let length = self.length + 1;
        let count = u32::from(*COUNTS.get(length)?);
        let (code, first) = (self.code << 1 | u32::from(bit), self.first << 1);
        let offset = code.wrapping_sub(first);
        if offset < count {
            return Some(Next::Symbol(SYMBOLS[self.index + offset as usize]));
        }
        let index = self.index + count as usize;
        Some(Next::Place(Self {
            length,
            code,
            first: first + count,
            index,
            is_all_ones: self.is_all_ones && bit,
        }))
    }
}

#[cfg(test)]
mod tests;
