package users

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

var userFields = []string{"game", "kind", "username", "avatar", "created", "granted"}

func (s *store) nextID(ctx context.Context) (int64, error) {
	id, err := s.db.Client.Incr(ctx, keys.UserNext()).Result()
	return id, redisdb.WrapError("number a player", err)
}

func (s *store) create(ctx context.Context, id, game int64, kind, username string, avatar *string) error {
	_, _, err := s.db.Run(ctx, scripts.UserCreate, []string{keys.User(id)}, game, kind, username, text(avatar))
	return err
}

// holder answers the id that has an identity, or 0.
func (s *store) holder(ctx context.Context, i Identity) (int64, error) {
	id, err := s.db.Client.Get(ctx, keys.Identity(i.Game, i.Kind, i.Digest)).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return id, redisdb.WrapError("look up an identity", err)
}

func (s *store) bind(ctx context.Context, i Identity, id int64) (holder int64, err error) {
	_, rest, err := s.db.Run(ctx, scripts.UserLinkIdentity, []string{keys.Identity(i.Game, i.Kind, i.Digest)}, id)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(rest[0], 10, 64)
}

func (s *store) promote(ctx context.Context, id int64, from, to Kind) error {
	word, _, err := s.db.Run(ctx, scripts.UserChangeKind, []string{keys.User(id)}, from, to)
	switch {
	case err != nil:
		return err
	case word == "stale":
		return apierror.AlreadyLinked
	case word != "ok":
		return redisdb.StatusError(scripts.UserChangeKind, word)
	}
	return nil
}

func (s *store) patch(ctx context.Context, id int64, p Patch) error {
	var changes []any
	if p.Username != nil {
		changes = append(changes, "username", *p.Username)
	}
	if p.Avatar != nil {
		changes = append(changes, "avatar", text(*p.Avatar))
	}
	return s.set(ctx, id, changes...)
}

func (s *store) welcomed(ctx context.Context, id int64) error { return s.set(ctx, id, "granted", "1") }

func (s *store) set(ctx context.Context, id int64, changes ...any) error {
	word, _, err := s.db.Run(ctx, scripts.UserPatch, []string{keys.User(id)}, changes...)
	if err != nil || word == "ok" {
		return err
	}
	return redisdb.StatusError(scripts.UserPatch, word)
}

func isUnknown(err error) bool { return errors.Is(err, apierror.UserNotFound) }

func (s *store) load(ctx context.Context, id int64) (User, error) {
	fields, err := s.db.AutoPipelined.HMGet(ctx, keys.User(id), userFields...).Result()
	if err != nil {
		return User{}, redisdb.WrapError("read a player", err)
	}
	u, ok := decode(id, fields)
	if !ok {
		return User{}, apierror.UserNotFound
	}
	return u, nil
}

// loadAll answers those of the players that exist.
func (s *store) loadAll(ctx context.Context, ids []int64) (map[int64]User, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if len(ids) == 1 { // the profile of who joins or opens a room
		u, err := s.load(ctx, ids[0])
		if isUnknown(err) {
			return nil, nil
		}
		return map[int64]User{ids[0]: u}, err
	}
	replies := make(map[int64]*redis.SliceCmd, len(ids))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			if replies[id] == nil {
				replies[id] = p.HMGet(ctx, keys.User(id), userFields...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read players", err)
	}
	found := make(map[int64]User, len(ids))
	for id, reply := range replies {
		if u, ok := decode(id, reply.Val()); ok {
			found[id] = u
		}
	}
	return found, nil
}

func decode(id int64, fields []any) (User, bool) {
	field := func(i int) string {
		text, _ := fields[i].(string)
		return text
	}
	u := User{Profile: Profile{ID: id, Username: field(2)}, Kind: field(1), GrantGiven: field(5) == "1"}
	u.Game, _ = strconv.ParseInt(field(0), 10, 64)
	u.CreatedAt = at(field(4))
	if avatar := field(3); avatar != "" {
		u.Avatar = &avatar
	}
	return u, u.Game != 0
}

func at(text string) time.Time {
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms).UTC()
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// view is what another player is to me; the zero view is nothing.
type view struct {
	state FriendState
	since time.Time
}

// seen reads a pair's "rel", "since" and my "block" as I see them.
func seen(me int64, rel, since, block string) view {
	switch {
	case block != "":
		return view{Blocked, at(block)}
	case rel == "":
		return view{}
	case rel == "friends":
		return view{Friends, at(since)}
	case rel == strconv.FormatInt(me, 10):
		return view{Outgoing, at(since)}
	default:
		return view{Incoming, at(since)}
	}
}

func (s *store) request(ctx context.Context, me, other int64) (view, error) {
	word, rest, err := s.db.Run(ctx, scripts.FriendRequest, []string{keys.Pair(me, other)}, me, other)
	switch {
	case err != nil:
		return view{}, err
	case word == "forbidden":
		return view{}, apierror.Forbidden.WithReason("you have blocked this player; take the block back first")
	case word != "ok":
		return view{}, redisdb.StatusError(scripts.FriendRequest, word)
	}
	return seen(me, rest[0], rest[1], ""), nil
}

func (s *store) remove(ctx context.Context, me, other int64) error {
	_, _, err := s.db.Run(ctx, scripts.FriendRemove, []string{keys.Pair(me, other)}, me)
	return err
}

func (s *store) block(ctx context.Context, me, other int64) (view, error) {
	_, rest, err := s.db.Run(ctx, scripts.FriendBlock, []string{keys.Pair(me, other)}, me)
	if err != nil {
		return view{}, err
	}
	return seen(me, "", "", rest[0]), nil
}

// hint names each of two players in the other's list.
func (s *store) hint(ctx context.Context, a, b int64) error {
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, keys.Friends(a), b)
		p.SAdd(ctx, keys.Friends(b), a)
		return nil
	})
	return redisdb.WrapError("note friends", err)
}

// tidy takes two players out of each other's lists when nothing is left between them. It looks once more afterwards: a request that
// came meanwhile has been hinted before this, and must not be lost.
func (s *store) tidy(ctx context.Context, a, b int64) error {
	left, err := s.db.Client.Exists(ctx, keys.Pair(a, b)).Result()
	if err != nil || left > 0 {
		return redisdb.WrapError("read a pair", err)
	}
	_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SRem(ctx, keys.Friends(a), b)
		p.SRem(ctx, keys.Friends(b), a)
		return nil
	})
	if err != nil {
		return redisdb.WrapError("tidy friends", err)
	}
	left, err = s.db.Client.Exists(ctx, keys.Pair(a, b)).Result()
	if err != nil || left == 0 {
		return redisdb.WrapError("read a pair", err)
	}
	return s.hint(ctx, a, b)
}

// room refuses forbidden when either list is full.
func (s *store) room(ctx context.Context, me, other int64) error {
	var mine, theirs *redis.IntCmd
	var listed *redis.BoolCmd
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		mine, theirs = p.SCard(ctx, keys.Friends(me)), p.SCard(ctx, keys.Friends(other))
		listed = p.SIsMember(ctx, keys.Friends(me), other)
		return nil
	})
	switch {
	case err != nil:
		return redisdb.WrapError("count friends", err)
	case listed.Val():
		return nil
	case mine.Val() >= MaxFriends:
		return apierror.Forbidden.WithReason("your list has %d players already", MaxFriends)
	case theirs.Val() >= MaxFriends:
		return apierror.Forbidden.WithReason("this player takes no more requests")
	}
	return nil
}

func (s *store) hints(ctx context.Context, id int64) ([]int64, error) {
	members, err := s.db.Client.SMembers(ctx, keys.Friends(id)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read friends", err)
	}
	ids := make([]int64, 0, len(members))
	for _, member := range members {
		if other, err := strconv.ParseInt(member, 10, 64); err == nil {
			ids = append(ids, other)
		}
	}
	return ids, nil
}

// views answers what the others are to me; those to whom I have nothing are absent.
func (s *store) views(ctx context.Context, me int64, others []int64) (map[int64]view, error) {
	if len(others) == 0 {
		return nil, nil
	}
	replies := make([]*redis.SliceCmd, len(others))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, other := range others {
			replies[i] = p.HMGet(ctx, keys.Pair(me, other), "rel", "since", "block:"+strconv.FormatInt(me, 10))
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read pairs", err)
	}
	views := make(map[int64]view, len(others))
	for i, other := range others {
		rel, _ := replies[i].Val()[0].(string)
		since, _ := replies[i].Val()[1].(string)
		block, _ := replies[i].Val()[2].(string)
		if v := seen(me, rel, since, block); v.state != "" {
			views[other] = v
		}
	}
	return views, nil
}

func (s *store) areFriends(ctx context.Context, me int64, others []int64) (map[int64]bool, error) {
	if len(others) == 0 {
		return nil, nil
	}
	replies := make([]*redis.StringCmd, len(others))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, other := range others {
			replies[i] = p.HGet(ctx, keys.Pair(me, other), "rel")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // the first absent pair is the pipeline's error
		return nil, redisdb.WrapError("read pairs", err)
	}
	friends := make(map[int64]bool, len(others))
	for i, other := range others {
		if err := replies[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, redisdb.WrapError("read pairs", err)
		}
		friends[other] = replies[i].Val() == "friends"
	}
	return friends, nil
}
