package users

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Service keeps players. It is safe for concurrent use.
type Service struct{ store *store }

// New makes the service.
func New(db *redisdb.DB) *Service { return &Service{&store{db}} }

// NewUser is what a player is called when it is new.
type NewUser struct {
	Username *string // nil: "Player-<id>"
	Avatar   *string
}

func (n NewUser) check() (NewUser, error) {
	p, err := Patch{Username: n.Username, Avatar: &n.Avatar}.check()
	n.Username = p.Username
	return n, err
}

// Create makes a player of a game; an empty username becomes "Player-<id>". It refuses invalid_request.
func (s *Service) Create(ctx context.Context, game int64, kind Kind, username string, avatar *string) (User, error) {
	n := NewUser{Avatar: avatar}
	if username != "" {
		n.Username = &username
	}
	n, err := n.check()
	if err != nil {
		return User{}, err
	}
	id, err := s.store.nextID(ctx)
	if err != nil {
		return User{}, err
	}
	return s.settle(ctx, id, game, kind, n)
}

// settle stores a player under an id that is its own, unless somebody has done so already, and answers who is there.
func (s *Service) settle(ctx context.Context, id, game int64, kind Kind, n NewUser) (User, error) {
	name := "Player-" + strconv.FormatInt(id, 10)
	if n.Username != nil {
		name = *n.Username
	}
	if err := s.store.create(ctx, id, game, kind, name, n.Avatar); err != nil {
		return User{}, err
	}
	return s.store.load(ctx, id)
}

// SignIn answers the player who has an identity, and makes one where there is none. It is safe to race: the identity is
// given to an id first, and whoever finds that id without a player, as after a crash, makes the player. It refuses invalid_request.
func (s *Service) SignIn(ctx context.Context, identity Identity, n NewUser) (User, error) {
	n, err := n.check()
	if err != nil {
		return User{}, err
	}
	id, err := s.store.holder(ctx, identity)
	if err != nil {
		return User{}, err
	}
	if id != 0 {
		u, err := s.store.load(ctx, id)
		if err == nil || !isUnknown(err) {
			return u, err
		}
	} else {
		if id, err = s.store.nextID(ctx); err != nil {
			return User{}, err
		}
		if id, err = s.store.bind(ctx, identity, id); err != nil {
			return User{}, err
		}
	}
	return s.settle(ctx, id, identity.Game, identity.Kind, n)
}

// Link gives a player one more identity and raises its kind to the identity's. A guest may become anything, the holder of
// a device anything but that again, others nothing. Linking the same twice is once. It refuses already_linked when the
// identity is somebody else's or the player is past it, and user_not_found.
func (s *Service) Link(ctx context.Context, id int64, identity Identity) (User, error) {
	u, err := s.store.load(ctx, id)
	if err != nil {
		return User{}, err
	}
	if u.Game != identity.Game {
		return User{}, apierror.UserNotFound
	}
	holder, err := s.store.holder(ctx, identity)
	if err != nil {
		return User{}, err
	}
	if holder != 0 && holder != id {
		return User{}, apierror.AlreadyLinked.WithReason("another account has this identity")
	}
	if u.Kind == identity.Kind && holder == id {
		return u, nil
	}
	if u.Kind != Guest && (u.Kind != Device || identity.Kind == Device) {
		return User{}, apierror.AlreadyLinked
	}
	if holder == 0 {
		if holder, err = s.store.bind(ctx, identity, id); err != nil {
			return User{}, err
		}
		if holder != id {
			return User{}, apierror.AlreadyLinked.WithReason("another account has this identity")
		}
	}
	if err := s.store.promote(ctx, id, u.Kind, identity.Kind); err != nil {
		return User{}, err
	}
	return s.store.load(ctx, id)
}

// Get answers a player or refuses user_not_found.
func (s *Service) Get(ctx context.Context, id int64) (User, error) { return s.store.load(ctx, id) }

// Profiles answers those of the players that exist.
func (s *Service) Profiles(ctx context.Context, ids ...int64) (map[int64]Profile, error) {
	found, err := s.store.loadAll(ctx, ids)
	profiles := make(map[int64]Profile, len(found))
	for id, u := range found {
		profiles[id] = u.Profile
	}
	return profiles, err
}

// Patch changes a player. It refuses user_not_found and invalid_request.
func (s *Service) Patch(ctx context.Context, id int64, p Patch) (User, error) {
	p, err := p.check()
	if err != nil {
		return User{}, err
	}
	if p.Username != nil || p.Avatar != nil {
		if err := s.store.patch(ctx, id, p); err != nil {
			return User{}, err
		}
	}
	return s.store.load(ctx, id)
}

// MarkGrantGiven notes that the welcome of a player is settled.
func (s *Service) MarkGrantGiven(ctx context.Context, id int64) error {
	return s.store.welcomed(ctx, id)
}

// MaxFriends is how many others a player can have something with.
const MaxFriends = 2000

// Friends lists the others with whom a player has something, by id.
func (s *Service) Friends(ctx context.Context, id int64) ([]Friend, error) {
	others, err := s.store.hints(ctx, id)
	if err != nil {
		return nil, err
	}
	views, err := s.store.views(ctx, id, others)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(views))
	for other := range views {
		ids = append(ids, other)
	}
	profiles, err := s.Profiles(ctx, ids...)
	if err != nil {
		return nil, err
	}
	friends := make([]Friend, 0, len(views))
	for other, view := range views {
		if p, ok := profiles[other]; ok {
			friends = append(friends, Friend{Profile: p, State: view.state, Since: view.since})
		}
	}
	slices.SortFunc(friends, func(a, b Friend) int { return cmp.Compare(a.ID, b.ID) })
	return friends, nil
}

// AddFriend asks another player of the same game, or accepts what the other asked. Doing it again changes nothing. It refuses
// user_not_found, invalid_request for oneself, and forbidden for whom I block or when a list is full. Who is blocked is not told.
func (s *Service) AddFriend(ctx context.Context, me, other int64) (Friend, error) {
	them, err := s.counterpart(ctx, me, other)
	if err != nil {
		return Friend{}, err
	}
	if err := s.store.room(ctx, me, other); err != nil {
		return Friend{}, err
	}
	// Before, so that a crash leaves no request unseen; after, so that somebody who tidied up in between does not either.
	if err := s.store.hint(ctx, me, other); err != nil {
		return Friend{}, err
	}
	view, err := s.store.request(ctx, me, other)
	if err != nil {
		return Friend{}, err
	}
	return Friend{Profile: them.Profile, State: view.state, Since: view.since}, s.store.hint(ctx, me, other)
}

// RemoveFriend takes back a request, a friendship or one's own block. Where there is nothing it changes nothing. It refuses user_not_found and
// invalid_request for oneself.
func (s *Service) RemoveFriend(ctx context.Context, me, other int64) error {
	if _, err := s.counterpart(ctx, me, other); err != nil {
		return err
	}
	if err := s.store.remove(ctx, me, other); err != nil {
		return err
	}
	return s.store.tidy(ctx, me, other)
}

// Block ends what is between two players and keeps the other from being a friend. It refuses user_not_found and invalid_request for oneself.
func (s *Service) Block(ctx context.Context, me, other int64) (Friend, error) {
	them, err := s.counterpart(ctx, me, other)
	if err != nil {
		return Friend{}, err
	}
	if err := s.store.hint(ctx, me, other); err != nil {
		return Friend{}, err
	}
	view, err := s.store.block(ctx, me, other)
	if err != nil {
		return Friend{}, err
	}
	return Friend{Profile: them.Profile, State: view.state, Since: view.since}, s.store.hint(ctx, me, other)
}

// AreFriends tells for each of the others whether it is a friend.
func (s *Service) AreFriends(ctx context.Context, me int64, others ...int64) (map[int64]bool, error) {
	return s.store.areFriends(ctx, me, others)
}

// counterpart answers another player of one's own game.
func (s *Service) counterpart(ctx context.Context, me, other int64) (User, error) {
	if me == other {
		return User{}, apierror.InvalidRequest.WithField("userId", "range", "must be another player")
	}
	both, err := s.store.loadAll(ctx, []int64{me, other})
	if err != nil {
		return User{}, err
	}
	mine, known := both[me]
	them, exists := both[other]
	if !known || !exists || mine.Game != them.Game {
		return User{}, apierror.UserNotFound
	}
	return them, nil
}
