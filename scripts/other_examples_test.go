package scripts_test

import (
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// otherExamples has calls of the scripts without rooms and money.
var otherExamples = []example{
	{scripts.UserCreate, "new", "ok", func(f *fixture) call { return f.newUserCall() }},
	{scripts.UserCreate, "there already", "ok", func(f *fixture) call {
		f.newUserCall().want(scripts.OK)
		return f.newUserCall().with(values{"username": "other"})
	}},
	{scripts.UserCreate, "with an identity", "ok", func(f *fixture) call {
		return f.newUserCall().with(values{"identity_field": keys.UserIdentityField("device", "digest")})
	}},
	{scripts.UserPatch, "a name", "ok", func(f *fixture) call {
		f.newUserCall().want(scripts.OK)
		return f.newCall(scripts.UserPatch, nil, "username", "other")
	}},
	{scripts.UserPatch, "no player", "user_not_found", func(f *fixture) call {
		return f.newCall(scripts.UserPatch, nil, "username", "other")
	}},
	{scripts.UserChangeKind, "of that kind", "ok", func(f *fixture) call {
		f.newUserCall().want(scripts.OK)
		return f.newCall(scripts.UserChangeKind, values{"from": "guest", "to": "external"})
	}},
	{scripts.UserChangeKind, "of another kind", "stale", func(f *fixture) call {
		f.newUserCall().want(scripts.OK)
		return f.newCall(scripts.UserChangeKind, values{"from": "merged", "to": "external"})
	}},
	{scripts.UserChangeKind, "no player", "user_not_found", func(f *fixture) call {
		return f.newCall(scripts.UserChangeKind, values{"from": "guest", "to": "external"})
	}},
	{scripts.UserLinkIdentity, "new", "ok", func(f *fixture) call {
		return f.newCall(scripts.UserLinkIdentity, nil)
	}},
	{scripts.UserLinkIdentity, "of another player", "ok", func(f *fixture) call {
		f.newCall(scripts.UserLinkIdentity, nil).want(scripts.OK)
		return f.newCall(scripts.UserLinkIdentity, values{"user": 8})
	}},
	{scripts.UserUnlinkIdentity, "one's own", "ok", func(f *fixture) call {
		f.newCall(scripts.UserLinkIdentity, nil).want(scripts.OK)
		return f.newCall(scripts.UserUnlinkIdentity, nil)
	}},
	{scripts.UserUnlinkIdentity, "of a player who had the grant", "ok", func(f *fixture) call {
		f.newCall(scripts.UserLinkIdentity, nil).want(scripts.OK)
		return f.newCall(scripts.UserUnlinkIdentity, values{"granted_ms": 60_000})
	}},
	{scripts.UserUnlinkIdentity, "of another player", "ok", func(f *fixture) call {
		f.newCall(scripts.UserLinkIdentity, values{"user": 8}).want(scripts.OK)
		return f.newCall(scripts.UserUnlinkIdentity, nil)
	}},
	{scripts.UserEndSessions, "of a player with sessions", "ok", func(f *fixture) call {
		f.newFamily().want(scripts.OK)
		return f.newCall(scripts.UserEndSessions, nil)
	}},
	{scripts.UserEndSessions, "no player", "user_not_found", func(f *fixture) call {
		return f.newCall(scripts.UserEndSessions, nil)
	}},

	{scripts.GameCreate, "new", "ok", func(f *fixture) call { return f.newGameCall() }},
	{scripts.GameCreate, "an id that is taken", "stale", func(f *fixture) call {
		f.newGameCall().want(scripts.OK)
		return f.newGameCall().with(values{"digest": "other"})
	}},
	{scripts.GamePatch, "of the newest version", "ok", func(f *fixture) call {
		f.newGameCall().want(scripts.OK)
		return f.newCall(scripts.GamePatch, values{"doc": "{2}", "version_read": 1})
	}},
	{scripts.GamePatch, "of an older version", "stale", func(f *fixture) call {
		f.newGameCall().want(scripts.OK)
		return f.newCall(scripts.GamePatch, values{"doc": "{2}", "version_read": 0})
	}},
	{scripts.GamePatch, "no game", "game_not_found", func(f *fixture) call {
		return f.newCall(scripts.GamePatch, values{"doc": "{2}", "version_read": 1})
	}},
	{scripts.GameUpdateKeys, "one for another", "ok", func(f *fixture) call {
		f.newGameCall().want(scripts.OK)
		return f.newCall(scripts.GameUpdateKeys, values{"added": "second", "removed": "first"})
	}},
	{scripts.GameUpdateKeys, "the ninth", "forbidden", func(f *fixture) call {
		f.newGameCall().want(scripts.OK)
		for i := range 7 {
			f.newCall(scripts.GameUpdateKeys, values{"added": i, "removed": ""}).want(scripts.OK)
		}
		return f.newCall(scripts.GameUpdateKeys, values{"added": "ninth", "removed": "first"})
	}},
	{scripts.GameUpdateKeys, "no game", "game_not_found", func(f *fixture) call {
		return f.newCall(scripts.GameUpdateKeys, values{"added": "second", "removed": ""})
	}},
	{scripts.GameClaimAudience, "of nobody", "ok", func(f *fixture) call { return f.newClaim(f.id, 0) }},
	{scripts.GameClaimAudience, "of a game that may be replaced", "ok", func(f *fixture) call {
		f.newClaim(f.id, 0).want(scripts.OK)
		return f.newClaim(f.id+1, f.id)
	}},
	{scripts.GameClaimAudience, "of another game", "stale", func(f *fixture) call {
		f.newClaim(f.id, 0).want(scripts.OK)
		return f.newClaim(f.id+1, f.id+2)
	}},

	{scripts.FriendRequest, "the first", "ok", func(f *fixture) call {
		return f.newFriendCall(scripts.FriendRequest, 0)
	}},
	{scripts.FriendRequest, "an answer", "ok", func(f *fixture) call {
		f.newFriendCall(scripts.FriendRequest, 0).want(scripts.OK)
		return f.newFriendCall(scripts.FriendRequest, 1)
	}},
	{scripts.FriendRequest, "to a player whom the sender blocks", "forbidden", func(f *fixture) call {
		f.newFriendCall(scripts.FriendBlock, 0).want(scripts.OK)
		return f.newFriendCall(scripts.FriendRequest, 0)
	}},
	{scripts.FriendRemove, "a friend", "ok", func(f *fixture) call {
		f.newFriendCall(scripts.FriendRequest, 0).want(scripts.OK)
		f.newFriendCall(scripts.FriendRequest, 1).want(scripts.OK)
		return f.newFriendCall(scripts.FriendRemove, 0)
	}},
	{scripts.FriendBlock, "a friend", "ok", func(f *fixture) call {
		f.newFriendCall(scripts.FriendRequest, 0).want(scripts.OK)
		f.newFriendCall(scripts.FriendRequest, 1).want(scripts.OK)
		return f.newFriendCall(scripts.FriendBlock, 0)
	}},

	{scripts.FriendIndex, "a friend", "ok", func(f *fixture) call { return f.newIndexing("friend", 8) }},
	{scripts.FriendIndex, "a request for friendship", "ok", func(f *fixture) call {
		f.newIndexing("incoming", 9).want(scripts.OK)
		return f.newIndexing("incoming", 8) // the newest of more than there is room for
	}},
	{scripts.FriendIndex, "a blocked friend", "ok", func(f *fixture) call {
		f.newIndexing("friend", 8).want(scripts.OK)
		return f.newIndexing("blocked", 8)
	}},
	{scripts.FriendIndex, "nothing more", "ok", func(f *fixture) call {
		f.newIndexing("blocked", 8).want(scripts.OK)
		return f.newIndexing("", 8)
	}},
	{scripts.FriendIndex, "a friend too many", "forbidden", func(f *fixture) call {
		f.newIndexing("friend", 9).want(scripts.OK)
		return f.newIndexing("outgoing", 8)
	}},
	{scripts.FriendIndex, "a blocked player too many", "forbidden", func(f *fixture) call {
		f.newIndexing("blocked", 9).want(scripts.OK)
		return f.newIndexing("blocked", 8)
	}},

	{scripts.RefreshStart, "new", "ok", func(f *fixture) call { return f.newFamily() }},
	{scripts.RefreshStart, "no player", "user_not_found", func(f *fixture) call {
		family := f.newFamily()
		f.drop(keys.User(f.id))
		return family
	}},
	{scripts.RefreshRotate, "the current token", "ok", func(f *fixture) call {
		f.newFamily().want(scripts.OK)
		return f.newRotation("first", "second")
	}},
	{scripts.RefreshRotate, "the token before the current one, soon", "ok", func(f *fixture) call {
		f.newFamily().want(scripts.OK)
		f.newRotation("first", "second").want(scripts.OK)
		return f.newRotation("first", "second")
	}},
	{scripts.RefreshRotate, "a family that was revoked", "refresh_reused", func(f *fixture) call {
		f.newFamily().want(scripts.OK)
		f.newRotation("first", "second").want(scripts.OK)
		f.newRotation("first", "second").with(values{"grace_ms": -1}).want("refresh_reused")
		return f.newRotation("second", "third")
	}},
	{scripts.RefreshRotate, "no family", "unauthenticated", func(f *fixture) call {
		return f.newRotation("first", "second")
	}},
	{scripts.RefreshRotate, "after the end of the user's sessions", "unauthenticated", func(f *fixture) call {
		f.newFamily().want(scripts.OK)
		f.newCall(scripts.UserEndSessions, nil).want(scripts.OK)
		return f.newRotation("first", "second")
	}},
	{scripts.RefreshRotate, "no player", "unauthenticated", func(f *fixture) call {
		f.newFamily().want(scripts.OK)
		f.drop(keys.User(f.id))
		return f.newRotation("first", "second")
	}},

	{scripts.ExternalTokenUse, "the first", "ok", func(f *fixture) call {
		return f.newCall(scripts.ExternalTokenUse, nil)
	}},

	{scripts.SaveRead, "no save", "ok", func(f *fixture) call { return f.newRead() }},
	{scripts.SaveWrite, "the first version", "ok", func(f *fixture) call { return f.newSave("m1", 0) }},
	{scripts.SaveWrite, "another message of that name", "replay", func(f *fixture) call {
		f.newSave("m1", 0).want(scripts.OK)
		return f.newSave("m1", 1)
	}},
	{scripts.SaveWrite, "after an older version", "version_conflict", func(f *fixture) call {
		return f.newSave("m1", 1)
	}},
	{scripts.SaveWrite, "checked against an older version", "stale", func(f *fixture) call {
		f.newSave("m1", 0).want(scripts.OK)
		return f.newSave("m2", 1).with(values{"checked": 0})
	}},
	{scripts.SaveWrite, "a slot too many", "limit_reached", func(f *fixture) call {
		return f.newSave("m1", 0).with(values{"max_slots": 0})
	}},
	{scripts.SaveWrite, "too large, the other slots are not known", "stale", func(f *fixture) call {
		return f.newSave("m1", 0).with(values{"max_bytes": 1})
	}},
	{scripts.SaveWrite, "too large alone", "limit_reached", func(f *fixture) call {
		return f.newSave("m1", 0).with(values{"max_bytes": 1, "with_others": 1})
	}},
	{scripts.SaveWrite, "an older version goes", "ok", func(f *fixture) call {
		f.newSave("m1", 0).want(scripts.OK)
		return f.newSave("m2", 1).with(values{"max_bytes": 2, "with_others": 1})
	}},

	{scripts.UserMatch, "new", "ok", func(f *fixture) call { return f.newMatchCall("r1m1") }},
	{scripts.UserMatch, "after another match", "ok", func(f *fixture) call {
		f.newMatchCall("r1m1").want(scripts.OK)
		return f.newMatchCall("r2m1")
	}},

	{scripts.RateLimitTake, "some of the burst", "ok", func(f *fixture) call { return f.newTake(3) }},
	{scripts.RateLimitTake, "none is left", "rate_limited", func(f *fixture) call {
		f.newTake(5).want(scripts.OK)
		return f.newTake(1)
	}},
	{scripts.RateLimitTake, "by another clock", "stale", func(f *fixture) call {
		return f.newTake(1).with(values{"node_ms": time.Now().Add(time.Hour).UnixMilli()})
	}},

	{scripts.LockAcquire, "that is free", "ok", func(f *fixture) call {
		return f.newCall(scripts.LockAcquire, values{"lock": fmt.Sprint("free", f.id), "value": "a", "lease_ms": 60_000})
	}},
	{scripts.LockAcquire, "that another has", "stale", func(f *fixture) call {
		c := f.newCall(scripts.LockAcquire, values{"lock": fmt.Sprint("held", f.id), "value": "a", "lease_ms": 60_000})
		c.want(scripts.OK)
		return c.with(values{"value": "b"})
	}},
	{scripts.MigrationLease, "that nobody has", "ok", func(f *fixture) call { return f.newLease() }},
	{scripts.MigrationLease, "that is made longer", "ok", func(f *fixture) call {
		c := f.newLease()
		c.want(scripts.OK)
		return c.with(values{"is_held": "1"})
	}},
	{scripts.MigrationLease, "that is given up", "ok", func(f *fixture) call {
		c := f.newLease()
		c.want(scripts.OK)
		return c.with(values{"lease_ms": 0})
	}},
	{scripts.MigrationLease, "that another has", "stale", func(f *fixture) call {
		c := f.newLease()
		c.want(scripts.OK)
		return c.with(values{"value": "b"})
	}},
	{scripts.MigrationLease, "that is over and is made longer", "stale", func(f *fixture) call {
		return f.newLease().with(values{"is_held": "1"})
	}},
	{scripts.MigrationWrite, "a text", "ok", func(f *fixture) call { return f.newMigrationWrite("string", 0, "text") }},
	{scripts.MigrationWrite, "a hash", "ok", func(f *fixture) call {
		return f.newMigrationWrite("hash", 0, "field", "1")
	}},
	{scripts.MigrationWrite, "a member, in place of a set", "ok", func(f *fixture) call {
		f.add(keys.Friends(f.id), "7")
		return f.newMigrationWrite("zset", 0, "8", "8")
	}},
	{scripts.MigrationWrite, "items of a list, of which one is there", "ok", func(f *fixture) call {
		f.newMigrationWrite("list", 0, "a", "b").want(scripts.OK)
		return f.newMigrationWrite("list", 1, "b", "c")
	}},
	{scripts.MigrationWrite, "items of a list that lacks those before", "stale", func(f *fixture) call {
		f.newMigrationWrite("list", 0, "a", "b").want(scripts.OK)
		return f.newMigrationWrite("list", 3, "d")
	}},
	{scripts.MigrationWrite, "after the deadline", "stale", func(f *fixture) call {
		return f.newMigrationWrite("string", 0, "text").with(values{"deadline_ms": 1})
	}},
	{scripts.MigrationRemove, "a set", "ok", func(f *fixture) call {
		f.add(keys.Friends(f.id), "7")
		return f.newCall(scripts.MigrationRemove, values{"deadline_ms": farFuture, "kind": "set"})
	}},
	{scripts.MigrationRemove, "members", "ok", func(f *fixture) call {
		f.newMigrationWrite("zset", 0, "7", "7", "8", "8").want(scripts.OK)
		return f.newCall(scripts.MigrationRemove, values{"deadline_ms": farFuture, "kind": "zset"}, "7")
	}},
	{scripts.MigrationRemove, "what has another type", "ok", func(f *fixture) call {
		f.newMigrationWrite("zset", 0, "7", "7").want(scripts.OK)
		return f.newCall(scripts.MigrationRemove, values{"deadline_ms": farFuture, "kind": "set"})
	}},
	{scripts.MigrationRemove, "after the deadline", "stale", func(f *fixture) call {
		f.add(keys.Friends(f.id), "7")
		return f.newCall(scripts.MigrationRemove, values{"deadline_ms": 1, "kind": "set"})
	}},
	{scripts.MigrationClose, "a ledger without entries", "ok", func(f *fixture) call {
		return f.newCall(scripts.MigrationClose, values{"deadline_ms": farFuture, "number": 0})
	}},
	{scripts.MigrationClose, "a ledger with other entries", "stale", func(f *fixture) call {
		return f.newCall(scripts.MigrationClose, values{"deadline_ms": farFuture, "number": 1})
	}},
	{scripts.MigrationClose, "after the deadline", "stale", func(f *fixture) call {
		return f.newCall(scripts.MigrationClose, values{"deadline_ms": 1, "number": 0})
	}},
	{scripts.HistoryRead, "", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newCall(scripts.HistoryRead, values{"number": 1})
	}},
	{scripts.HistoryAdvance, "", "ok", func(f *fixture) call {
		return f.newCall(scripts.HistoryAdvance, values{"known_epoch": 1, "at_ms": 5, "node": "a"}, 7, 10, 8, 2)
	}},
	{scripts.HistoryStop, "a wrong store", "ok", func(f *fixture) call {
		return f.newStop(1)
	}},
	{scripts.HistoryStop, "a store that was accepted", "stale", func(f *fixture) call {
		f.newAccept(0).want(scripts.OK)
		return f.newStop(0)
	}},
	{scripts.HistoryAccept, "", "ok", func(f *fixture) call { return f.newAccept(0) }},
	{scripts.HistoryAccept, "a store that is stopped again", "stale", func(f *fixture) call {
		f.newAccept(0).want(scripts.OK)
		f.newStop(1).want(scripts.OK)
		return f.newAccept(0)
	}},
	{scripts.LayoutRaise, "of a store with the nodes that were looked at", "ok", func(f *fixture) call {
		return f.newRaise("a", "b")
	}},
	{scripts.LayoutRaise, "with a node that was not looked at", "stale", func(f *fixture) call {
		return f.newRaise("a")
	}},
	{scripts.LayoutRaise, "with a node in the place of another", "stale", func(f *fixture) call {
		return f.newRaise("a", "c")
	}},
	{scripts.LayoutRaise, "of a store that has a third layout", "stale", func(f *fixture) call {
		return f.newRaise("a", "b").with(values{"from_layout": 5, "to_layout": 6})
	}},
	{scripts.LayoutRaise, "downwards", "stale", func(f *fixture) call {
		return f.newRaise("a", "b").with(values{"to_layout": 2})
	}},
	{scripts.ProbeWrite, "", "ok", func(f *fixture) call {
		return f.newCall(scripts.ProbeWrite, values{"ttl_ms": 60_000})
	}},
	{scripts.WorkName, "", "ok", func(f *fixture) call { return f.newCall(scripts.WorkName, nil, 1, 2) }},
	{scripts.SessionsEnd, "", "ok", func(f *fixture) call {
		return f.newCall(scripts.SessionsEnd, values{
			"subject": "user 7", "began_by_ms": "", "code": 4001, "oldest_ms": 1, "until_ms": "",
		})
	}},

	{scripts.GameCountPlayer, "the last of a day", "ok", func(f *fixture) call {
		f.newCall(scripts.GameCountPlayer, values{"most": 2}).want(scripts.OK)
		return f.newCall(scripts.GameCountPlayer, values{"most": 2})
	}},
	{scripts.GameCountPlayer, "one too many", "limit_reached", func(f *fixture) call {
		f.newCall(scripts.GameCountPlayer, values{"most": 1}).want(scripts.OK)
		return f.newCall(scripts.GameCountPlayer, values{"most": 1})
	}},
	{scripts.GameCountPlayer, "on the day after", "ok", func(f *fixture) call {
		testkit.Check(f.t, f.db.Client.Set(f.t.Context(), keys.NewPlayers(f.id), "1|1000", 0).Err())
		return f.newCall(scripts.GameCountPlayer, nil)
	}},
	{scripts.TrailAppend, "a record", "ok", func(f *fixture) call { return f.newAct() }},
	{scripts.TrailAppend, "a record of a game's server", "ok", func(f *fixture) call {
		return f.newAct().with(values{"game": f.id})
	}},
	{scripts.TrailAppend, "a record too many", "ok", func(f *fixture) call {
		f.newAct().want(scripts.OK)
		return f.newAct()
	}},
	{scripts.TrailAppend, "sent again", "replay", func(f *fixture) call {
		c := f.newAct()
		c.want(scripts.OK)
		return c
	}},

	{scripts.FencingTokenIssue, "to the holder", "ok", func(f *fixture) call { return f.newFence("mine") }},
	{scripts.FencingTokenIssue, "to another", "stale", func(f *fixture) call { return f.newFence("other") }},

	{scripts.IdempotencyBegin, "the first", "ok", func(f *fixture) call {
		return f.newExecution(scripts.IdempotencyBegin, "a")
	}},
	{scripts.IdempotencyBegin, "while the first runs", "request_in_progress", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyBegin, "b")
	}},
	{scripts.IdempotencyBegin, "after the first", "replay", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		f.newExecution(scripts.IdempotencyFinish, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyBegin, "b")
	}},
	{scripts.IdempotencyBegin, "of another request", "idempotency_key_reused", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyBegin, "a").with(values{"fingerprint": "other"})
	}},
	{scripts.IdempotencyFinish, "one's own", "ok", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyFinish, "a")
	}},
	{scripts.IdempotencyFinish, "another's", "stale", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyFinish, "b")
	}},
	{scripts.IdempotencyRelease, "one's own", "ok", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyRelease, "a")
	}},
	{scripts.IdempotencyRelease, "another's", "stale", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyRelease, "b")
	}},
	{scripts.IdempotencyRelease, "with a response", "stale", func(f *fixture) call {
		f.newExecution(scripts.IdempotencyBegin, "a").want(scripts.OK)
		f.newExecution(scripts.IdempotencyFinish, "a").want(scripts.OK)
		return f.newExecution(scripts.IdempotencyRelease, "a")
	}},
}

func (f *fixture) newUserCall() call {
	return f.newCall(scripts.UserCreate, values{
		"kind": "guest", "username": "ann", "avatar": "", "identity_field": "",
	})
}

func (f *fixture) newGameCall() call {
	return f.newCall(scripts.GameCreate, values{"doc": "{}", "digest": "first"})
}

// newClaim returns the claim of an audience of its own by a game.
func (f *fixture) newClaim(game, former int64) call {
	return f.newCall(scripts.GameClaimAudience, values{
		"field": fmt.Sprint("audience", f.id), "game": game, "former": former,
	})
}

// newFriendCall returns a call by the first or the second player of the fixture's pair.
func (f *fixture) newFriendCall(s *scripts.Script, who int64) call {
	return f.newCall(s, values{"user": f.id + who, "other": f.id + 1 - who})
}

// newIndexing returns a call that lists another player in an index with room for one of each kind.
func (f *fixture) newIndexing(state string, other int64) call {
	return f.newCall(scripts.FriendIndex, values{
		"other": other, "state": state, "since": 1_000 + other, "max_friends": 1, "max_incoming": 1,
		"max_blocked": 1,
	})
}

// newFamily stores the fixture's player and returns a call that begins a family of refresh tokens.
func (f *fixture) newFamily() call {
	f.t.Helper()
	f.newUserCall().want(scripts.OK)
	return f.newCall(scripts.RefreshStart, values{
		"digest": "first", "idle_ms": 60_000, "life_ms": 600_000, "name": "family", "server_key": "",
	})
}

func (f *fixture) newRotation(digest, next string) call {
	return f.newCall(scripts.RefreshRotate, values{
		"digest": digest, "next_digest": next, "idle_ms": 60_000, "grace_ms": 60_000, "name": "family",
	})
}

// newRead returns a read of a slot that has no save: what the script returns has the time.
func (f *fixture) newRead() call {
	return f.newCall(scripts.SaveRead, values{"slot": "one", "with_state": 1, "other": ""})
}

// newSave returns the save of a state after a version, checked against that version.
func (f *fixture) newSave(message string, base int) call {
	return f.newCall(scripts.SaveWrite, values{
		"base": base, "checked": base, "version": base + 1, "message": message, "mark": message + " 0 2 k s {}",
		"state": "{}", "slot": "one", "line": "1 0 2", "max_slots": 3, "max_versions": 2, "event_values": "{}",
		"max_bytes": 1000, "with_others": 0,
	})
}

// newMatchCall returns a call that tells a player of a match.
func (f *fixture) newMatchCall(matchID string) call {
	return f.newCall(scripts.UserMatch, values{
		"event_values": "12|" + matchID + "|0190a1b2-c3d4-8000-8000-000000000001|1795195946123",
	})
}

// newTake returns a call that takes permits of a burst of five, of which one grows back in a day.
func (f *fixture) newTake(permits int) call {
	return f.newCall(scripts.RateLimitTake, values{
		"interval": (24 * time.Hour).Microseconds(), "burst": 5, "wanted": permits, "used": 0,
	})
}

// newAct returns a call that appends a record to a trail of one.
func (f *fixture) newAct() call {
	return f.newCall(scripts.TrailAppend, values{
		"act": "{}", "most": 1, "mark_ms": 60_000, "game": "",
	})
}

// newFence returns a call for a fencing token of a lock that has the value "mine".
func (f *fixture) newFence(value string) call {
	f.t.Helper()
	c := f.newCall(scripts.FencingTokenIssue, values{"lock": fmt.Sprint("lock", f.id), "value": value})
	testkit.Check(f.t, f.db.Client.Set(f.t.Context(), keys.Lock(c.text("lock")), "mine", time.Hour).Err())
	return c
}

func (f *fixture) newExecution(s *scripts.Script, owner string) call {
	return f.newCall(s, values{
		"fingerprint": "print", "owner": owner, "lease_ms": 30_000, "sealed": "response", "keep_ms": 86_400_000,
	})
}

// newAccept returns the acceptance of a store by an operator who read an epoch there.
func (f *fixture) newAccept(epoch int) call {
	return f.newCall(scripts.HistoryAccept, values{
		"new_name": "new", "least_epoch": 0, "former_name": "old", "seen_epoch": epoch,
	})
}

// newRaise returns the rise of the layout of a store with the nodes a and b, by an operator who has
// looked at some.
func (f *fixture) newRaise(seen ...string) call {
	c := f.newCall(scripts.LayoutRaise, values{"from_layout": 3, "to_layout": 4})
	for _, id := range seen {
		c.rest = append(c.rest, id)
	}
	meta, nodes := c.keyOf("meta"), c.keyOf("nodes")
	f.db.Client.HSet(f.t.Context(), meta, keys.MetaLayoutField, 3)
	f.db.Client.HSet(f.t.Context(), nodes, "a", "{}", "b", "{}")
	return c
}

// newStop returns the stop of a node that read an epoch in the store.
func (f *fixture) newStop(epoch int) call {
	given := values{"seen_epoch": epoch, "stop": "{}", "missing_epoch": 2, "at_ms": 5, "node": "a"}
	return f.newCall(scripts.HistoryStop, given, 7, 10, 8, "")
}

// farFuture is a time in ms that no clock of a test reaches.
const farFuture = 9_000_000_000_000

// newLease returns a migration that takes its lease.
func (f *fixture) newLease() call {
	return f.newCall(scripts.MigrationLease, values{
		"lock": fmt.Sprint("m", f.id), "value": "a", "lease_ms": 60_000, "is_held": "",
	})
}

// newMigrationWrite returns a write of values into the fixture's index of friends.
func (f *fixture) newMigrationWrite(kind string, before int, list ...any) call {
	f.t.Helper()
	return f.newCall(scripts.MigrationWrite, values{
		"deadline_ms": farFuture, "kind": kind, "expires_ms": "", "before": before,
	}, list...)
}

// add adds a member to a set.
func (f *fixture) add(key, member string) {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.SAdd(f.t.Context(), key, member).Err(), "add to %s", key)
}
