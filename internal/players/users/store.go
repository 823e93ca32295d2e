package users

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

var userFields = []string{"game", "kind", "username", "avatar", "created", grantedField, "suspended"}

func (s *store) nextID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Incr(ctx, keys.UserIDCounter()).Result()
	return id, redisdb.WrapError("number a player", err)
}

// lastID returns the last id that was given, 0 before the first.
func (s *store) lastID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Get(ctx, keys.UserIDCounter()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return id, redisdb.WrapError("read the number of players", err)
}

// create stores a player, with the digest of the identity that signed in, "" for none.
func (s *store) create(
	ctx context.Context, id, game int64, kind Kind, identityDigest, username string, avatar *string,
) error {
	identityField := ""
	if identityDigest != "" {
		identityField = keys.UserIdentityField(kind, identityDigest)
	}
	reply, err := s.db.RunScript(ctx, scripts.UserCreate, []string{keys.User(id)}, scripts.UserCreateArgs{
		Game: game, Kind: kind, Username: username, Avatar: orEmpty(avatar), IdentityField: identityField,
	}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.UserCreate)
}

// identityOwner returns the id of the player with an identity, or 0.
func (s *store) identityOwner(ctx context.Context, i Identity) (int64, error) {
	id, err := s.db.Client.Get(ctx, keys.Identity(i.GameID, i.Kind, i.Digest)).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return id, redisdb.WrapError("look up an identity", err)
}

// bindIdentity gives an identity to a player unless another player has it, and returns the id of
// the player who has it.
func (s *store) bindIdentity(ctx context.Context, i Identity, id int64) (int64, error) {
	reply, err := s.db.RunScript(ctx, scripts.UserLinkIdentity, []string{keys.Identity(i.GameID, i.Kind, i.Digest)},
		scripts.UserLinkIdentityArgs{User: id}.List()...)
	if err != nil {
		return 0, err
	}
	if err := reply.Err(scripts.UserLinkIdentity); err != nil {
		return 0, err
	}
	values := redisdb.NewValues("the owner of an identity", reply.Values)
	owner := values.NextInt()
	return owner, values.Err()
}

// addIdentityField records that a player may have an identity, so that Delete finds it.
func (s *store) addIdentityField(ctx context.Context, id int64, i Identity) error {
	return s.setFields(ctx, id, keys.UserIdentityField(i.Kind, i.Digest), "1")
}

// grantMemory is for how long an identity of a deleted player counts as one that had its grant.
const grantMemory = 366 * 24 * time.Hour

const grantedField = "granted"

// hadGrant reports whether somebody who is deleted had the signup grant with an identity of a
// player.
func (s *store) hadGrant(ctx context.Context, game, id int64) (bool, error) {
	fields, err := s.db.Client.HKeys(ctx, keys.User(id)).Result()
	if err != nil {
		return false, redisdb.WrapError("read a player's identities", err)
	}
	for _, field := range fields {
		kind, digest, ok := keys.ParseUserIdentityField(field)
		if !ok || !IsVouchedFor(kind) {
			continue
		}
		found, err := s.db.Client.Exists(ctx, keys.GrantedIdentity(game, kind, digest)).Result()
		if err != nil || found > 0 {
			return found > 0, redisdb.WrapError("read whether an identity had its grant", err)
		}
	}
	return false, nil
}

// deleteUser deletes a player and the identities that the player has in a game.
func (s *store) deleteUser(ctx context.Context, game, id int64) error {
	fields, err := s.db.Client.HKeys(ctx, keys.User(id)).Result()
	if err != nil {
		return redisdb.WrapError("read a player's identities", err)
	}
	hasGrant := slices.Contains(fields, grantedField)
	for _, field := range fields {
		kind, digest, ok := keys.ParseUserIdentityField(field)
		if !ok {
			continue
		}
		granted := time.Duration(0)
		if hasGrant && IsVouchedFor(kind) {
			granted = grantMemory
		}
		names := []string{keys.Identity(game, kind, digest), keys.GrantedIdentity(game, kind, digest)}
		reply, err := s.db.RunScript(ctx, scripts.UserUnlinkIdentity, names,
			scripts.UserUnlinkIdentityArgs{User: id, GrantedMS: granted.Milliseconds()}.List()...)
		if err == nil {
			err = reply.Err(scripts.UserUnlinkIdentity)
		}
		if err != nil {
			return err
		}
	}
	return redisdb.WrapError("delete a player", s.db.Client.Del(ctx, append(indexKeys(id), keys.User(id))...).Err())
}

func (s *store) promote(ctx context.Context, id int64, from, to Kind) error {
	reply, err := s.db.RunScript(ctx, scripts.UserChangeKind, []string{keys.User(id)},
		scripts.UserChangeKindArgs{From: from, To: to}.List()...)
	switch {
	case err != nil:
		return err
	case reply.Status == scripts.Stale:
		return apierror.AlreadyLinked
	}
	return reply.Err(scripts.UserChangeKind)
}

func (s *store) patch(ctx context.Context, id int64, p PatchInput) error {
	var changes []any
	if p.Username != nil {
		changes = append(changes, "username", *p.Username)
	}
	if p.Avatar.IsGiven {
		changes = append(changes, "avatar", orEmpty(p.Avatar.Value))
	}
	return s.setFields(ctx, id, changes...)
}

func (s *store) markGrantGiven(ctx context.Context, id int64) error {
	return s.setFields(ctx, id, grantedField, "1")
}

// setFields writes fields and their values, in turns, of a player that exists.
func (s *store) setFields(ctx context.Context, id int64, changes ...any) error {
	reply, err := s.db.RunScript(ctx, scripts.UserPatch, []string{keys.User(id)}, changes...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.UserPatch)
}

func (s *store) load(ctx context.Context, id int64) (User, error) {
	values, err := s.db.AutoPipelined.HMGet(ctx, keys.User(id), userFields...).Result()
	if err != nil {
		return User{}, redisdb.WrapError("read a player", err)
	}
	return decodeUser(id, values)
}

// loadAll returns those of the players that exist, by id, and those that exist and cannot be read.
func (s *store) loadAll(ctx context.Context, ids []int64) (found map[int64]User, unreadable []int64, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	replies := make(map[int64]*redis.SliceCmd, len(ids))
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			if replies[id] == nil {
				replies[id] = p.HMGet(ctx, keys.User(id), userFields...)
			}
		}
		return nil
	})
	found = make(map[int64]User, len(ids))
	for id, reply := range replies {
		if spoiled, err := checkReply(ctx, "read a player", reply); err != nil {
			return nil, nil, err
		} else if spoiled {
			unreadable = append(unreadable, id)
			continue
		}
		u, err := decodeUser(id, reply.Val())
		switch {
		case err == nil:
			found[id] = u
		case !errors.Is(err, apierror.UserNotFound):
			return nil, nil, err
		}
	}
	return found, unreadable, nil
}

// decodeUser decodes the values of userFields. It returns user_not_found when there are none.
func decodeUser(id int64, values []any) (User, error) {
	f := redisdb.NewFieldsFromHMGet("a player", userFields, values)
	u := User{
		Profile:    Profile{ID: id, Username: f.Text("username")},
		GameID:     f.Int("game"),
		Kind:       f.Text("kind"),
		CreatedAt:  f.Time("created"),
		GrantGiven: f.Text(grantedField) == "1",
	}
	if avatar := f.Text("avatar"); avatar != "" {
		u.Avatar = &avatar
	}
	if until, reason, ok := strings.Cut(f.Text("suspended"), "|"); ok {
		u.Suspension = &Suspension{Reason: reason}
		if ms := redisdb.NewValues("a suspension", []string{until}).NextInt(); ms > 0 {
			u.Suspension.Until = time.UnixMilli(ms).UTC()
		}
	}
	if err := f.Err(); err != nil {
		return User{}, err
	}
	if u.GameID == 0 {
		return User{}, apierror.UserNotFound
	}
	return u, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// setSuspension stores a suspension, or that there is none.
func (s *store) setSuspension(ctx context.Context, id int64, suspension *Suspension) error {
	text := ""
	if suspension != nil {
		ms := int64(0)
		if !suspension.Until.IsZero() {
			ms = suspension.Until.UnixMilli()
		}
		text = strconv.FormatInt(ms, 10) + "|" + suspension.Reason
	}
	return s.setFields(ctx, id, "suspended", text)
}

// relation is the relation of another player to this one; the zero value is no relation.
type relation struct {
	state FriendState
	since time.Time
}

// blockField is the field of a pair that holds since when the player has blocked the other, in
// milliseconds.
func blockField(id int64) string { return "block:" + strconv.FormatInt(id, 10) }

// decodeRelation decodes a pair as one of its two players sees it.
func decodeRelation(id int64, pair *redisdb.Fields) (relation, error) {
	var r relation
	switch rel := pair.Text("rel"); {
	case pair.Text(blockField(id)) != "":
		r = relation{StateBlocked, pair.Time(blockField(id))}
	case rel == "":
	case rel == "friends":
		r = relation{StateFriends, pair.Time("since")}
	case rel == strconv.FormatInt(id, 10): // the pair stores who sent the request
		r = relation{StateOutgoing, pair.Time("since")}
	default:
		r = relation{StateIncoming, pair.Time("since")}
	}
	return r, pair.Err()
}

func (s *store) requestFriend(ctx context.Context, id, other int64) (relation, error) {
	reply, err := s.db.RunScript(ctx, scripts.FriendRequest, []string{keys.PlayerPair(id, other)},
		scripts.FriendRequestArgs{User: id, Other: other}.List()...)
	switch {
	case err != nil:
		return relation{}, err
	case reply.Status == apierror.Forbidden.Code:
		return relation{}, errBlockedOther
	}
	if err := reply.Err(scripts.FriendRequest); err != nil {
		return relation{}, err
	}
	values := redisdb.NewValues("a friend request", reply.Values)
	pair := map[string]string{"rel": values.NextText(), "since": values.NextText()}
	if err := values.Err(); err != nil {
		return relation{}, err
	}
	return decodeRelation(id, redisdb.NewFields("a pair", pair))
}

func (s *store) removeRelation(ctx context.Context, id, other int64) error {
	reply, err := s.db.RunScript(ctx, scripts.FriendRemove, []string{keys.PlayerPair(id, other)},
		scripts.FriendRemoveArgs{User: id}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.FriendRemove)
}

func (s *store) block(ctx context.Context, id, other int64) (relation, error) {
	reply, err := s.db.RunScript(ctx, scripts.FriendBlock, []string{keys.PlayerPair(id, other)},
		scripts.FriendBlockArgs{User: id}.List()...)
	if err != nil {
		return relation{}, err
	}
	if err := reply.Err(scripts.FriendBlock); err != nil {
		return relation{}, err
	}
	values := redisdb.NewValues("a block", reply.Values)
	r := relation{StateBlocked, values.NextTime()}
	return r, values.Err()
}

func indexKeys(id int64) []string {
	return []string{keys.Friends(id), keys.FriendRequests(id), keys.BlockedPlayers(id)}
}

// updateIndex lists another player in a player's index by their relation. It returns errIndexFull
// for one that the index has no room for, unless the relation is stored already (isStored): then
// it must be listed.
func (s *store) updateIndex(ctx context.Context, id, other int64, r relation, isStored bool) error {
	maxFriends, maxBlocked := strconv.Itoa(MaxFriends), strconv.Itoa(MaxBlocked)
	if isStored {
		maxFriends, maxBlocked = "", ""
	}
	reply, err := s.db.RunScript(ctx, scripts.FriendIndex, indexKeys(id), scripts.FriendIndexArgs{
		Other: other, State: string(r.state), Since: r.since.UnixMilli(), MaxFriends: maxFriends,
		MaxIncoming: MaxIncomingRequests, MaxBlocked: maxBlocked,
	}.List()...)
	switch {
	case err != nil:
		return err
	case reply.Status == apierror.Forbidden.Code:
		return errIndexFull
	}
	return reply.Err(scripts.FriendIndex)
}

var errIndexFull = errors.New("the index is full")

// updateIndexes lists two players in each other's index by what is stored about the pair. A change
// of the pair in between is followed, so that the later of two updates leaves the indexes right.
func (s *store) updateIndexes(ctx context.Context, a, b int64) error {
	var seen [2]relation
	for first := true; ; first = false {
		pair, err := s.pairRelations(ctx, a, b)
		if err != nil || !first && pair == seen {
			return err
		}
		seen = pair
		if err := s.updateIndex(ctx, a, b, pair[0], true); err != nil {
			return err
		}
		if err := s.updateIndex(ctx, b, a, pair[1], true); err != nil {
			return err
		}
	}
}

// pairRelations returns what b is to a, and a to b.
func (s *store) pairRelations(ctx context.Context, a, b int64) (both [2]relation, err error) {
	fields := []string{"rel", "since", blockField(a), blockField(b)}
	values, err := s.db.Client.HMGet(ctx, keys.PlayerPair(a, b), fields...).Result()
	if err != nil {
		return both, redisdb.WrapError("read a pair", err)
	}
	for i, id := range []int64{a, b} {
		if both[i], err = decodeRelation(id, redisdb.NewFieldsFromHMGet("a pair", fields, values)); err != nil {
			return both, err
		}
	}
	return both, nil
}

// checkReply returns the error of a reply, except for a key that somebody overwrote with another
// type: it logs that and reports that the key cannot be read, so that the others are returned.
func checkReply(ctx context.Context, operation string, reply redis.Cmder) (unreadable bool, err error) {
	switch err := redisdb.WrapError(operation, reply.Err()); {
	case errors.Is(err, redis.Nil):
		return false, nil
	case redisdb.IsWrongType(err):
		slog.ErrorContext(ctx, "a record of players cannot be read", "key", reply.Args()[1], "error", err)
		return true, nil
	default:
		return false, err
	}
}

// indexPage returns up to limit ids above after of those in a player's index, in order, and whether
// there may be more.
func (s *store) indexPage(ctx context.Context, id, after int64, limit int) (ids []int64, more bool, err error) {
	above := &redis.ZRangeBy{Min: "(" + strconv.FormatInt(after, 10), Max: "+inf", Count: int64(limit) + 1}
	var lists [3]*redis.StringSliceCmd
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		lists[0] = p.ZRangeByScore(ctx, keys.Friends(id), above)
		lists[1] = p.ZRangeByScore(ctx, keys.BlockedPlayers(id), above)
		lists[2] = p.ZRange(ctx, keys.FriendRequests(id), 0, -1) // few, and in order of time
		return nil
	})
	for _, list := range lists {
		if _, err := checkReply(ctx, "read friends", list); err != nil {
			return nil, false, err
		}
		values := redisdb.NewValues("an index of friends", list.Val())
		for range list.Val() {
			if other := values.NextInt(); other > after {
				ids = append(ids, other)
			}
		}
		if err := values.Err(); err != nil {
			return nil, false, err
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > limit {
		return ids[:limit], true, nil
	}
	return ids, false, nil
}

// listedFriends returns up to limit ids of those in a player's index of friends.
func (s *store) listedFriends(ctx context.Context, id int64, limit int) ([]int64, error) {
	list := s.db.Client.ZRange(ctx, keys.Friends(id), 0, int64(limit)-1)
	if _, err := checkReply(ctx, "read friends", list); err != nil {
		return nil, err
	}
	values := redisdb.NewValues("an index of friends", list.Val())
	ids := make([]int64, len(list.Val()))
	for i := range ids {
		ids[i] = values.NextInt()
	}
	return ids, values.Err()
}

// deletePair deletes what is between a player who is gone and another one.
func (s *store) deletePair(ctx context.Context, gone, other int64) error {
	if err := s.db.Client.Del(ctx, keys.PlayerPair(gone, other)).Err(); err != nil {
		return redisdb.WrapError("delete a pair", err)
	}
	return s.updateIndexes(ctx, gone, other)
}

// relations returns what the others are to a player, by id; those without a relation are absent.
func (s *store) relations(ctx context.Context, id int64, others []int64) (map[int64]relation, error) {
	if len(others) == 0 {
		return nil, nil
	}
	fields := []string{"rel", "since", blockField(id)}
	replies := make([]*redis.SliceCmd, len(others))
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, other := range others {
			replies[i] = p.HMGet(ctx, keys.PlayerPair(id, other), fields...)
		}
		return nil
	})
	found := make(map[int64]relation, len(others))
	for i, other := range others {
		if unreadable, err := checkReply(ctx, "read a pair", replies[i]); err != nil {
			return nil, err
		} else if unreadable {
			continue
		}
		r, err := decodeRelation(id, redisdb.NewFieldsFromHMGet("a pair", fields, replies[i].Val()))
		if err != nil {
			return nil, err
		}
		if r.state != "" {
			found[other] = r
		}
	}
	return found, nil
}

func (s *store) areFriends(ctx context.Context, id int64, others []int64) (map[int64]bool, error) {
	if len(others) == 0 {
		return nil, nil
	}
	replies := make([]*redis.StringCmd, len(others))
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, other := range others {
			replies[i] = p.HGet(ctx, keys.PlayerPair(id, other), "rel")
		}
		return nil
	})
	friends := make(map[int64]bool, len(others))
	for i, other := range others {
		if _, err := checkReply(ctx, "read a pair", replies[i]); err != nil {
			return nil, err
		}
		friends[other] = replies[i].Val() == "friends"
	}
	return friends, nil
}
