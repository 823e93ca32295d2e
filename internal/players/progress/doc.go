// Package progress keeps the versions of a player's saves and checks the game's rules for them.
//
// A save belongs to a player, a game and a slot, and is a JSON object. The versions of a slot count
// 1, 2, 3 …; the last five are kept. A save names the version that its sender last read, so that no
// version is overwritten unread:
//
//	           Save(0)          Save(1)           Save(n)
//	(nothing) ────────▶ 1 ─────────────▶ 2  …  n ─────────▶ n+1     other versions: version_conflict
//	                                         │
//	                                         └ Restore(k) ─▶ n+1    with the state of version k
//
// Invariants:
//   - A rejected save changed nothing.
//   - The rules compare with the version that the save replaces. They are checked in Go, against
//     what was read, and the script writes only while that version is still the newest. No lock is
//     needed.
//   - The same message with the same content and base makes one version, however often it arrives,
//     as long as that version is kept; later it is a version_conflict. Message ids count per
//     connection: the same id with other content is another message, which the version chain keeps
//     from overwriting anything.
//   - A stored version is signed with a key that the store does not know. The signature is checked
//     before a state is returned or compared with, so an altered state is never returned
//     (save_tampered). History reports which versions have a valid signature, and Restore makes one
//     of them the newest. An attacker who puts an older, valid version back into the store is not
//     detected: that needs a memory outside of the store.
//
// A state is checked in this order: size, syntax, depth, rules. Rules lists the conditions.
//
// Players read and write their own saves only. The server of the user's game and the operator may
// replace a state, see ReplaceState.
package progress
