package users

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Service keeps players. It is safe for concurrent use.
type Service struct {
	store       *store
	profiles    *profileCache
	avatarHosts func(ctx context.Context, gameID int64) ([]string, error) // nil: every public host
	admitNew    func(ctx context.Context, gameID int64) error
}

// Options are what games decide about their players.
type Options struct {
	// AvatarHosts lists the hosts at which avatars of a game may be, none for every public one. It may
	// return game_not_found. Nil: every public one.
	AvatarHosts func(ctx context.Context, gameID int64) ([]string, error)
	// AdmitNew is called once before each new player, which fails with its error. Nil admits all.
	AdmitNew func(ctx context.Context, gameID int64) error
}

// New returns a service on a store.
func New(db *redisdb.DB, o Options) *Service {
	if o.AdmitNew == nil {
		o.AdmitNew = func(context.Context, int64) error { return nil }
	}
	return &Service{
		store: &store{db}, profiles: newProfileCache(), avatarHosts: o.AvatarHosts, admitNew: o.AdmitNew,
	}
}

// avatarHostsOf returns the hosts for avatars of a game, when an avatar is to be checked.
func (s *Service) avatarHostsOf(ctx context.Context, game int64, avatar *string) ([]string, error) {
	if avatar == nil || s.avatarHosts == nil {
		return nil, nil
	}
	hosts, err := s.avatarHosts(ctx, game)
	if errors.Is(err, apierror.GameNotFound) {
		return nil, nil
	}
	return hosts, err
}

// ProfileInput is the profile of a new player.
type ProfileInput struct {
	Username *string // nil: "Player-<id>"
	Avatar   *string // nil: none
}

func (s *Service) validate(ctx context.Context, game int64, n ProfileInput) (ProfileInput, error) {
	hosts, err := s.avatarHostsOf(ctx, game, n.Avatar)
	if err != nil {
		return n, err
	}
	p, err := PatchInput{Username: n.Username, Avatar: wire.Given(n.Avatar)}.validate(CheckUsername, hosts)
	n.Username = p.Username
	return n, err
}

// Create makes a player of a game. It has no Caller: a new guest has no account yet. It
// returns invalid_request.
func (s *Service) Create(ctx context.Context, game int64, kind Kind, n ProfileInput) (User, error) {
	n, err := s.validate(ctx, game, n)
	if err != nil {
		return User{}, err
	}
	if err := s.admitNew(ctx, game); err != nil {
		return User{}, err
	}
	id, err := s.store.nextID(ctx)
	if err != nil {
		return User{}, err
	}
	return s.createIfAbsent(ctx, id, Identity{GameID: game, Kind: kind}, n)
}

// createIfAbsent stores a player under an id, unless another request has already stored one, and
// returns the player that is stored. An identity without a digest is that of a guest.
func (s *Service) createIfAbsent(ctx context.Context, id int64, identity Identity, n ProfileInput) (User, error) {
	name := "Player-" + strconv.FormatInt(id, 10)
	if n.Username != nil {
		name = *n.Username
	}
	err := s.store.create(ctx, id, identity.GameID, identity.Kind, identity.Digest, name, n.Avatar)
	if err != nil {
		return User{}, err
	}
	return s.profiles.load(ctx, s.store, id)
}

// SignIn returns the player who has an identity, and makes one when there is none. It has no
// Caller: the identity is what makes somebody a caller. It is safe to race: the identity is bound
// to an id first, and every request that finds the id without a player, as after a crash, makes the
// player. isNew reports whether this request made the player. It returns invalid_request.
func (s *Service) SignIn(
	ctx context.Context, identity Identity, n ProfileInput,
) (user User, isNew bool, err error) {
	if n, err = s.validate(ctx, identity.GameID, n); err != nil {
		return User{}, false, err
	}
	id, err := s.store.identityOwner(ctx, identity)
	if err != nil {
		return User{}, false, err
	}
	if id != 0 {
		user, err = s.profiles.load(ctx, s.store, id)
		if err == nil || !errors.Is(err, apierror.UserNotFound) {
			return user, false, err
		}
	} else {
		if err := s.admitNew(ctx, identity.GameID); err != nil {
			return User{}, false, err
		}
		if id, err = s.store.nextID(ctx); err != nil {
			return User{}, false, err
		}
		if id, err = s.store.bindIdentity(ctx, identity, id); err != nil {
			return User{}, false, err
		}
	}
	user, err = s.createIfAbsent(ctx, id, identity, n)
	return user, true, err
}

// HasIdentity reports whether a player has an identity. It has no Caller, like SignIn.
func (s *Service) HasIdentity(ctx context.Context, identity Identity) (bool, error) {
	owner, err := s.store.identityOwner(ctx, identity)
	return owner != 0, err
}

var errIdentityTaken = apierror.AlreadyLinked.WithReason("another account has this identity")

// Link gives a player one more identity and raises the player's kind to that of the identity. A
// guest may become any kind, a device player any kind but that again, others none. Linking the same
// identity again changes nothing. It is for the callers of Get. It returns forbidden,
// user_not_found, and already_linked when the identity belongs to another player or the player's
// kind cannot be raised.
func (s *Service) Link(ctx context.Context, caller principal.Caller, id int64, identity Identity) (User, error) {
	u, err := s.Get(ctx, caller, id)
	if err != nil {
		return User{}, err
	}
	if u.GameID != identity.GameID {
		return User{}, apierror.UserNotFound
	}
	owner, err := s.store.identityOwner(ctx, identity)
	if err != nil {
		return User{}, err
	}
	if owner != 0 && owner != id {
		return User{}, errIdentityTaken
	}
	if u.Kind == identity.Kind && owner == id {
		return u, nil
	}
	if u.Kind != KindGuest && (u.Kind != KindDevice || identity.Kind == KindDevice) {
		return User{}, apierror.AlreadyLinked
	}
	if err := s.store.addIdentityField(ctx, id, identity); err != nil {
		return User{}, err
	}
	if owner == 0 {
		if owner, err = s.store.bindIdentity(ctx, identity, id); err != nil {
			return User{}, err
		}
		if owner != id {
			return User{}, errIdentityTaken
		}
	}
	if err := s.store.promote(ctx, id, u.Kind, identity.Kind); err != nil {
		return User{}, err
	}
	return s.store.load(ctx, id)
}

// IsGuest reports whether nobody vouches for a player: the credential is a refresh token or the
// secret of a device. It has no Caller, as Game. It returns user_not_found.
func (s *Service) IsGuest(ctx context.Context, id int64) (bool, error) {
	u, err := s.profiles.load(ctx, s.store, id)
	return u.Kind == KindGuest || u.Kind == KindDevice, err
}

// Get returns a player to the player themself, to the server of the player's game and to the
// operator. It returns forbidden and user_not_found.
func (s *Service) Get(ctx context.Context, caller principal.Caller, id int64) (User, error) {
	switch caller.Role {
	case principal.Operator, principal.Server:
	case principal.Player:
		if caller.UserID != id {
			return User{}, apierror.Forbidden
		}
	default:
		return User{}, apierror.Forbidden
	}
	u, err := s.profiles.load(ctx, s.store, id)
	if err == nil && !caller.CanAccessGame(u.GameID) {
		return User{}, apierror.UserNotFound
	}
	return u, err
}

// ListQuery selects a page of players.
type ListQuery struct {
	GameID int64 // only players of this game, or 0 for all
	Before int64 // only players with a lower id, or 0 for the newest
	Limit  int   // players in the page, at least 1
}

// A list of players reads as many ids as the page shall have, then more while players of other
// games or deleted ones leave room, at most maxScannedUsers. A page that meets this bound may be
// short, or empty, and still have a next page.
const maxScannedUsers = 500

// List returns players, newest first, and the id before which the next page begins, 0 at the end.
// It is for the operator and, about the own game, for a server. It returns forbidden.
func (s *Service) List(ctx context.Context, caller principal.Caller, q ListQuery) (page []User, next int64, err error) {
	switch {
	case caller.Role == principal.Server && (q.GameID == 0 || q.GameID == caller.GameID):
		q.GameID = caller.GameID
	case caller.Role != principal.Operator:
		return nil, 0, apierror.Forbidden
	}
	before := q.Before
	last, err := s.store.lastID(ctx)
	if err != nil {
		return nil, 0, err
	}
	if before == 0 || before > last {
		before = last + 1
	}
	page = []User{}
	for scanned := 0; before > 1 && scanned < maxScannedUsers; {
		ids := idsBefore(before, q.Limit)
		found, _, err := s.store.loadAll(ctx, ids) // the list leaves out whom it cannot read
		if err != nil {
			return nil, 0, err
		}
		scanned += len(ids)
		for _, id := range ids {
			if u, ok := found[id]; ok && (q.GameID == 0 || u.GameID == q.GameID) {
				page = append(page, u)
			}
			before = id
			if len(page) == q.Limit {
				break
			}
		}
		if len(page) == q.Limit {
			break
		}
	}
	if before > 1 {
		return page, before, nil
	}
	return page, 0, nil
}

// idsBefore returns up to count ids below before, the largest first.
func idsBefore(before int64, count int) []int64 {
	ids := make([]int64, 0, count)
	for id := before - 1; id >= 1 && len(ids) < count; id-- {
		ids = append(ids, id)
	}
	return ids
}

// Find returns a player. It has no Caller: authentication needs the player before it knows the
// caller. It returns user_not_found.
func (s *Service) Find(ctx context.Context, id int64) (User, error) { return s.store.load(ctx, id) }

// RecentProfile returns the profile of a player as of at most 5 s ago: a change on another node may
// be missing, one by Patch here is not. The player who takes a seat shall cost no round trip beside
// that of the seat. It has no Caller, like Profiles. It returns user_not_found.
func (s *Service) RecentProfile(ctx context.Context, id int64) (Profile, error) {
	if p, ok := s.profiles.entries.Get(id); ok {
		return p, nil
	}
	u, err := s.profiles.load(ctx, s.store, id)
	return u.Profile, err
}

// CreatedAt returns when a player was made, by the store's clock. It has no Caller, like Profiles.
// It returns user_not_found.
func (s *Service) CreatedAt(ctx context.Context, id int64) (time.Time, error) {
	u, err := s.store.load(ctx, id)
	return u.CreatedAt, err
}

// Profiles returns the profiles of those players that exist, by id. It has no Caller: a profile is
// what everybody may see.
func (s *Service) Profiles(ctx context.Context, ids ...int64) (map[int64]Profile, error) {
	found, _, err := s.store.loadAll(ctx, ids)
	profiles := make(map[int64]Profile, len(found))
	for id, u := range found {
		profiles[id] = u.Profile
	}
	return profiles, err
}

// Patch changes a player. It is for the callers of Get. It returns forbidden, user_not_found and
// invalid_request.
func (s *Service) Patch(ctx context.Context, caller principal.Caller, id int64, p PatchInput) (User, error) {
	u, err := s.Get(ctx, caller, id)
	if err != nil {
		return User{}, err
	}
	var hosts []string
	if p.Avatar.IsGiven {
		if hosts, err = s.avatarHostsOf(ctx, u.GameID, p.Avatar.Value); err != nil {
			return User{}, err
		}
	}
	checkUsername := CheckUsername
	if caller.Role == principal.Player && p.Username != nil && *p.Username != u.Username {
		checkUsername = CheckChosenUsername
	}
	if p, err = p.validate(checkUsername, hosts); err != nil {
		return User{}, err
	}
	if p.Username == nil && !p.Avatar.IsGiven {
		return u, nil
	}
	err = s.store.patch(ctx, id, p)
	s.profiles.drop(id) // even after an error: the script may have run
	if err != nil {
		return User{}, err
	}
	return s.profiles.load(ctx, s.store, id)
}

// maxSuspensionRunes bounds the reason of a suspension, in characters.
const maxSuspensionRunes = 200

// SetSuspension suspends a player or, with nil, lifts the suspension. It is for the operator. It
// returns forbidden, user_not_found and invalid_request.
func (s *Service) SetSuspension(
	ctx context.Context, caller principal.Caller, id int64, suspension *Suspension,
) (User, error) {
	if caller.Role != principal.Operator {
		return User{}, apierror.Forbidden
	}
	if suspension != nil {
		reason, err := text.CheckLine("reason", suspension.Reason, maxSuspensionRunes)
		if err != nil {
			return User{}, err
		}
		if !suspension.Until.IsZero() && !suspension.Until.After(time.Now()) { // it would lift the one that stands
			return User{}, apierror.InvalidRequest.WithField("until", "range", "must be in the future")
		}
		suspension = &Suspension{Reason: reason, Until: suspension.Until}
	}
	if err := s.store.setSuspension(ctx, id, suspension); err != nil {
		return User{}, err
	}
	return s.store.load(ctx, id)
}

// Delete deletes the calling player: friends on both sides, identities and the profile. The
// credentials of the identities then make new players. Repeating it completes what failed. It
// returns forbidden to everybody but players.
func (s *Service) Delete(ctx context.Context, caller principal.Caller) error {
	if caller.Role != principal.Player {
		return apierror.Forbidden
	}
	const pageSize = 100
	for after, more := int64(0), true; more; {
		var ids []int64
		var err error
		if ids, more, err = s.store.indexPage(ctx, caller.UserID, after, pageSize); err != nil {
			return err
		}
		for _, other := range ids {
			if err := s.store.deletePair(ctx, caller.UserID, other); err != nil {
				return err
			}
			after = other
		}
	}
	err := s.store.deleteUser(ctx, caller.GameID, caller.UserID)
	s.profiles.drop(caller.UserID) // even after an error: the command may have run
	return err
}

// HadGrant reports whether a player who is deleted had the signup grant with an identity that the
// player has now. It has no Caller, as MarkGrantGiven.
func (s *Service) HadGrant(ctx context.Context, user User) (bool, error) {
	if !IsVouchedFor(user.Kind) {
		return false, nil
	}
	return s.store.hadGrant(ctx, user.GameID, user.ID)
}

// MarkGrantGiven records that a player has the signup grant of the game. It has no Caller: it is a
// part of every sign-in. It returns user_not_found.
func (s *Service) MarkGrantGiven(ctx context.Context, id int64) error {
	return s.store.markGrantGiven(ctx, id)
}

// Bounds of a player's lists. What others do counts towards none of a player's own.
const (
	MaxFriends          = 2000   // friends, and requests that the player sent
	MaxIncomingRequests = 200    // of others; the oldest falls out
	MaxBlocked          = 10_000 // players
)

// Friends returns a page of the others to whom the calling player has a relation, ordered by id: up
// to limit with ids above after, and the id to go on after, or 0 at the end. A page may be short.
// It returns forbidden.
func (s *Service) Friends(
	ctx context.Context, caller principal.Caller, after int64, limit int,
) (friends []Friend, next int64, err error) {
	if caller.Role != principal.Player {
		return nil, 0, apierror.Forbidden
	}
	ids, more, err := s.store.indexPage(ctx, caller.UserID, after, limit)
	if err != nil {
		return nil, 0, err
	}
	if more {
		next = ids[len(ids)-1]
	}
	relations, err := s.store.relations(ctx, caller.UserID, ids)
	if err != nil {
		return nil, 0, err
	}
	found, unreadable, err := s.store.loadAll(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	friends = make([]Friend, 0, len(ids))
	for _, other := range ids {
		u, exists := found[other]
		r, related := relations[other]
		switch {
		case exists && related:
			friends = append(friends, Friend{Profile: u.Profile, State: r.state, Since: r.since})
		case !exists && !slices.Contains(unreadable, other): // a player who is gone must not take room
			if err := s.store.deletePair(ctx, other, caller.UserID); err != nil {
				return nil, 0, err
			}
		}
	}
	return friends, next, nil
}

// AddFriend sends the calling player's friend request to another player of the same game, or
// accepts the other's request. Repeating it changes nothing. It returns user_not_found,
// invalid_request for the caller's own id, and forbidden when the caller is no player, has blocked
// the other, or the caller's list is full. It does not reveal that the other has blocked the
// caller.
func (s *Service) AddFriend(ctx context.Context, caller principal.Caller, other int64) (Friend, error) {
	them, err := s.findOther(ctx, caller, other)
	if err != nil {
		return Friend{}, err
	}
	// Listed before the change, where there must be room, and for both after it.
	before, err := s.store.pairRelations(ctx, caller.UserID, other)
	if err != nil {
		return Friend{}, err
	}
	if before[0].state == StateBlocked {
		return Friend{}, errBlockedOther
	}
	err = s.store.updateIndex(ctx, caller.UserID, other, relation{state: StateOutgoing}, false)
	if errors.Is(err, errIndexFull) {
		return Friend{}, apierror.Forbidden.WithReason("your list has %d players already", MaxFriends)
	}
	if err != nil {
		return Friend{}, err
	}
	r, err := s.store.requestFriend(ctx, caller.UserID, other)
	if updateErr := s.store.updateIndexes(ctx, caller.UserID, other); err == nil {
		err = updateErr
	}
	if err != nil {
		return Friend{}, err
	}
	return Friend{Profile: them.Profile, State: r.state, Since: r.since}, nil
}

var errBlockedOther = apierror.Forbidden.WithReason("you have blocked this player; take the block back first")

// RemoveFriend removes a request, a friendship or the calling player's own block. Without any it
// changes nothing. It returns forbidden when the caller is no player, user_not_found, and
// invalid_request for the caller's own id.
func (s *Service) RemoveFriend(ctx context.Context, caller principal.Caller, other int64) error {
	if _, err := s.findOther(ctx, caller, other); err != nil {
		return err
	}
	if err := s.store.removeRelation(ctx, caller.UserID, other); err != nil {
		return err
	}
	return s.store.updateIndexes(ctx, caller.UserID, other)
}

// Block ends the relation of two players and keeps the other from becoming a friend. It returns
// forbidden when the caller is no player or has blocked MaxBlocked others, user_not_found, and
// invalid_request for the caller's own id.
func (s *Service) Block(ctx context.Context, caller principal.Caller, other int64) (Friend, error) {
	them, err := s.findOther(ctx, caller, other)
	if err != nil {
		return Friend{}, err
	}
	err = s.store.updateIndex(ctx, caller.UserID, other, relation{state: StateBlocked}, false)
	if errors.Is(err, errIndexFull) {
		return Friend{}, apierror.Forbidden.WithReason("you have blocked %d players already", MaxBlocked)
	}
	if err != nil {
		return Friend{}, err
	}
	r, err := s.store.block(ctx, caller.UserID, other)
	if err != nil {
		return Friend{}, err
	}
	return Friend{Profile: them.Profile, State: r.state, Since: r.since}, s.store.updateIndexes(ctx, caller.UserID, other)
}

// ListedFriends returns up to limit ids, the lowest first, of those in a player's list of friends:
// it has whom the player sent a request, too, which AreFriends tells apart.
func (s *Service) ListedFriends(ctx context.Context, id int64, limit int) ([]int64, error) {
	return s.store.listedFriends(ctx, id, limit)
}

// AreFriends reports for each of the others whether they are a friend of the player. It has no
// Caller: rooms for friends call it for the player who joins.
func (s *Service) AreFriends(ctx context.Context, id int64, others ...int64) (map[int64]bool, error) {
	return s.store.areFriends(ctx, id, others)
}

// findOther returns another player of the calling player's game.
func (s *Service) findOther(ctx context.Context, caller principal.Caller, other int64) (User, error) {
	if caller.Role != principal.Player {
		return User{}, apierror.Forbidden
	}
	if caller.UserID == other {
		return User{}, apierror.InvalidRequest.WithField("userId", "range", "must be another player")
	}
	both, _, err := s.store.loadAll(ctx, []int64{caller.UserID, other})
	if err != nil {
		return User{}, err
	}
	self, selfExists := both[caller.UserID]
	them, otherExists := both[other]
	if !selfExists || !otherExists || self.GameID != them.GameID {
		return User{}, apierror.UserNotFound
	}
	return them, nil
}
