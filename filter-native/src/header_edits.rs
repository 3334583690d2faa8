//! Finds the fewest changes that turn a header map of Envoy into the wanted one, because the ABI sets
//! one header at a time.

use crate::abi::Headers;

/// A change of a header map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit<'a> {
    /// Removes all values of a header.
    Remove(&'a [u8]),
    /// Sets the only value of a header.
    Set(&'a [u8], &'a [u8]),
    /// Adds a value at the end of the map.
    Add(&'a [u8], &'a [u8]),
}

/// Returns the changes from `present` to `wanted`, in this order. Pseudo-headers are set; of the other
/// headers, those are kept that already stand at the start of the wanted order.
pub(crate) fn edits<'a>(present: &'a Headers, wanted: &[(&'a [u8], &'a [u8])]) -> Vec<Edit<'a>> {
    let is_pseudo = |name: &[u8]| name.starts_with(b":");
    let count = |name: &[u8]| present.iter().filter(|(other, _)| other == name).count();
    let mut edits = Vec::new();
    let (pseudo, rest): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(|(name, _)| is_pseudo(name));
    for (name, value) in &pseudo {
        if !present.iter().any(|(other, found)| other == name && found == value) {
            edits.push(Edit::Set(name, value));
        }
    }
    let mut rest = rest.into_iter().peekable();
    let mut removed: Vec<&[u8]> = Vec::new();
    for (name, value) in present {
        if is_pseudo(name) && pseudo.iter().any(|(wanted, _)| wanted == name) {
            continue;
        }
        let is_next = rest.peek().is_some_and(|(wanted, other)| wanted == name && other == value);
        if is_next && count(name) == 1 {
            rest.next();
        } else if !removed.contains(&name.as_slice()) {
            edits.push(Edit::Remove(name));
            removed.push(name);
        }
    }
    edits.extend(rest.map(|(name, value)| Edit::Add(name, value)));
    edits
}

#[cfg(test)]
mod tests {
    use super::{Edit, edits};
    use crate::abi::Headers;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
    }

    /// Applies edits as Envoy does: new headers are added at the end, pseudo-headers stay in front.
    fn apply(mut map: Headers, edits: &[Edit]) -> Headers {
        for edit in edits {
            match *edit {
                Edit::Remove(name) => map.retain(|(other, _)| other != name),
                Edit::Set(name, value) => match map.iter_mut().find(|(other, _)| other == name) {
                    Some((_, found)) => *found = value.to_vec(),
                    None => map.insert(0, (name.to_vec(), value.to_vec())),
                },
                Edit::Add(name, value) => map.push((name.to_vec(), value.to_vec())),
            }
        }
        map
    }

    #[test]
    fn edits_lead_to_the_wanted_headers() {
        let kubelet =
            [(":method", "GET"), (":path", "/p"), ("user-agent", "kube-probe/1.36"), ("accept", "*/*")];
        for (present, wanted, count) in [
            (&kubelet[..], &kubelet[..], 0),
            (
                &kubelet,
                &[(":method", "GET"), (":path", "/"), ("user-agent", "kube-probe/1.36"), ("a", "b")],
                3,
            ),
            (&kubelet, &[(":method", "GET"), (":path", "/p"), ("accept", "*/*"), ("user-agent", "x")], 2),
            (&kubelet, &[(":method", "GET"), (":path", "/p")], 2),
            (&[("a", "1"), ("a", "2"), ("b", "3")], &[("a", "1"), ("a", "2"), ("b", "3")], 5),
            (&[("a", "1"), ("b", "2"), ("a", "3")], &[("b", "2"), ("b", "4")], 2),
            (&[(":status", "200"), ("server", "x")], &[(":status", "503")], 2),
        ] {
            let (present, wanted) = (headers(present), headers(wanted));
            let pairs: Vec<_> =
                wanted.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
            let edits = edits(&present, &pairs);
            assert_eq!(apply(present.clone(), &edits), wanted, "{edits:?}");
            assert_eq!(edits.len(), count, "{edits:?}");
        }
    }
}
