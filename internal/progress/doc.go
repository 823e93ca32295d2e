// Package progress keeps the versions of a player's saves and the rules that they must keep.
//
// A save belongs to a player, a game and a slot, and is a JSON object. The versions of a slot count 1, 2, 3 …; the last
// five are kept. Who saves names the version that it last read, so nothing is ever overwritten unread:
//
//	           Save(0)          Save(1)           Save(n)
//	(nothing) ────────▶ 1 ─────────────▶ 2  …  n ─────────▶ n+1     another version: version_conflict, with the server's copy
//	                                         │
//	                                         └ Restore(k) ─▶ n+1    with the state of version k
//
// Always:
//   - A refused save changed nothing.
//   - The version that the rules compared with is the one that the save replaces: rules are checked here, over what was
//     read, and the script writes only while that is still the newest version. No lock is needed.
//   - The same message with the same content and base is one version, however often it comes, while that version is kept;
//     later it is a version_conflict. A message id that comes back with other content is another message: ids count per
//     connection, and the version chain alone keeps it from overwriting anything.
//   - What is stored is signed with a key that the store does not know, and the signature is checked wherever a state is
//     handed out or compared with. A state that was altered in the store is never handed out (save_tampered);
//     History says which versions are intact, and Restore makes one of them the newest. Setting a slot back to an
//     older, intact version behind Parlor's back is not detected: that takes a memory outside of the store.
//
// A state is checked in this order: size, syntax, depth, rules. What the rules can say stands at Rules.
//
// The package trusts the caller about who the player is, and knows no socket.
package progress
