package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Players returns profiles and friends. *users.Service implements it.
type Players interface {
	Game(ctx context.Context, userID int64) (int64, error)
	Profiles(ctx context.Context, ids ...int64) (map[int64]users.Profile, error)
	// ListedFriends returns up to limit players, of whom AreFriends reports some to be friends.
	ListedFriends(ctx context.Context, userID int64, limit int) ([]int64, error)
	AreFriends(ctx context.Context, userID int64, others ...int64) (map[int64]bool, error)
}

// Games finds games. *games.Service implements it.
type Games interface {
	Find(ctx context.Context, id int64) (games.Game, error)
}

// Options are the settings of leaderboards.
type Options struct {
	AdmitNew func(gameID int64) error // is called before each new board and play; nil admits all
	Prizes   *prizes.Service          // pays the prizes of seasons; nil: there are none
}

// Service has the methods of leaderboards. It is safe for concurrent use.
//
// Every method decides by the caller's role what the caller may do: staff is the operator and the
// game's server. A board of another game is board_not_found. Beside the codes that its comment
// lists, every method returns forbidden (wrong role), game_not_found, board_not_found and
// store_unavailable.
type Service struct {
	store    store
	players  Players
	games    Games
	admitNew func(gameID int64) error
	prizes   *prizes.Service
	boards   *cache.Cache[boardID, *board]        // as of at most boardTTL ago
	entered  *cache.Cache[enteredBoard, struct{}] // whom keys.UserBoards has for a board
	work     *leader.Work
	draw     func() uint32 // decides which free place of a league a player gets
	sweeps   sweeps
}

// boardID names a board.
type boardID struct {
	gameID int64
	key    string
}

// enteredBoard is a player on a board.
type enteredBoard struct {
	boardID
	userID int64
}

const (
	// boardTTL is for how long a node may go on with a board that was changed. Scores are safe from
	// that: the script compares the season with the store's clock.
	boardTTL         = time.Second
	maxCachedBoards  = 4096
	maxCachedEntered = 65_536

	// maxAttempts bounds how often something is done again that others changed meanwhile.
	maxAttempts = 8
)

// boardWork is the kind of the background work for package leader, and the name of its lock.
const boardWork = "boards"

// New returns the service on an open store.
func New(db *redisdb.DB, players Players, games Games, o Options) *Service {
	if o.AdmitNew == nil {
		o.AdmitNew = func(int64) error { return nil }
	}
	s := &Service{
		store: store{db}, players: players, games: games, admitNew: o.AdmitNew, prizes: o.Prizes,
		boards:  cache.New[boardID, *board]("boards", maxCachedBoards, boardTTL),
		entered: cache.New[enteredBoard, struct{}]("entered_boards", maxCachedEntered, 0),
		draw:    rand.Uint32,
	}
	s.sweeps.games = map[int64]*gameSweep{}
	s.work = leader.New(db, boardWork, leader.EndsByTime, s.sweepGames)
	return s
}

// authorizeRead returns nil when the caller may see the boards of a game.
func (s *Service) authorizeRead(ctx context.Context, caller principal.Caller, gameID int64) error {
	return games.AuthorizeRead(ctx, s.games, caller, gameID)
}

// authorizeManage returns nil when the caller is staff of a game.
func (s *Service) authorizeManage(ctx context.Context, caller principal.Caller, gameID int64) error {
	return games.AuthorizeStaff(ctx, s.games, caller, gameID, "leaderboards")
}

// load returns a board that is not deleted, as it was at most boardTTL ago. It returns
// board_not_found.
func (s *Service) load(ctx context.Context, gameID int64, key string) (*board, error) {
	if b, ok := s.boards.Get(boardID{gameID, key}); ok {
		return b, nil
	}
	return s.reload(ctx, gameID, key)
}

// reload is load from the store.
func (s *Service) reload(ctx context.Context, gameID int64, key string) (*board, error) {
	b, err := s.read(ctx, gameID, key)
	if err == nil {
		s.boards.Add(boardID{gameID, key}, b)
	}
	return b, err
}

// read is reload of a board that nobody else has, so that it may be changed.
func (s *Service) read(ctx context.Context, gameID int64, key string) (*board, error) {
	if !boardPattern.MatchString(key) {
		return nil, apierror.BoardNotFound
	}
	b, err := s.store.load(ctx, gameID, key)
	if err != nil {
		return nil, err
	}
	if b.isDeleted {
		return nil, apierror.BoardNotFound
	}
	return b, nil
}

// change writes what edit makes of a board, again when others changed the board meanwhile, and
// returns the board after it. edit gets the store's time; without fields it changes nothing.
func (s *Service) change(
	ctx context.Context, gameID int64, key string, edit func(b *board, nowMS int64) (boardChange, error),
) (*board, error) {
	return s.changeAt(ctx, s.store.now, gameID, key, edit)
}

// changeAt is change by the time that readClock returns.
func (s *Service) changeAt(
	ctx context.Context, readClock func(context.Context) (int64, error), gameID int64, key string,
	edit func(b *board, nowMS int64) (boardChange, error),
) (*board, error) {
	return redisdb.RetryStale(maxAttempts, func() (*board, error) {
		b, err := s.read(ctx, gameID, key)
		if err != nil {
			return nil, err
		}
		now, err := readClock(ctx)
		if err != nil {
			return nil, err
		}
		if b.bucketsOfNext, err = s.bucketsOfNext(ctx, b, now); err != nil {
			return nil, err
		}
		c, err := edit(b, now)
		if err != nil || len(c.fields) == 0 {
			return b, err
		}
		err = s.store.define(ctx, gameID, key, b.version, c)
		s.boards.Remove(boardID{gameID, key})
		if err != nil {
			return nil, err
		}
		s.store.setDue(ctx, gameID, key, now)
		s.work.Changed(gameID)
		return s.store.load(ctx, gameID, key)
	})
}

// bucketsOfNext returns the number of buckets for the seasons to come: as many as the last season
// would have needed.
func (s *Service) bucketsOfNext(ctx context.Context, b *board, nowMS int64) (int64, error) {
	current := b.currentAt(nowMS)
	r := b.ranking(current)
	counts, err := s.store.countEntries(ctx, r)
	if err != nil {
		return 0, err
	}
	shards := int64(r.definition.Shards)
	return max(bucketsFor(counts[0]/shards), r.definition.bucketsAhead()), nil
}

// create is Create for a board of any key.
func (s *Service) create(
	ctx context.Context, caller principal.Caller, gameID int64, d Definition,
) (Leaderboard, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return Leaderboard{}, err
	}
	d = d.withDefaults()
	if err := d.check(); err != nil {
		return Leaderboard{}, err
	}
	if err := s.checkPrizes(ctx, caller, gameID, &d); err != nil {
		return Leaderboard{}, err
	}
	if err := s.admitNew(gameID); err != nil {
		return Leaderboard{}, err
	}
	game, err := s.games.Find(ctx, gameID)
	if err != nil {
		return Leaderboard{}, err
	}
	now, err := s.store.now(ctx)
	if err != nil {
		return Leaderboard{}, err
	}
	b := &board{
		gameID: gameID, key: d.Board, definitions: map[int64]*Definition{1: &d},
		bucketsOfNext: d.bucketsAhead(),
	}
	first := season{
		number: 1, opens: now, graceMS: d.GraceSeconds * 1000, definition: 1, buckets: b.bucketsOfNext,
	}
	if d.StartsAt != nil {
		first.opens = max(now, d.StartsAt.UnixMilli())
	}
	if first.closes, err = d.closeAfter(first.opens); err != nil {
		return Leaderboard{}, err
	}
	b.seasons = []season{first}
	added, err := b.extend(now)
	if err != nil {
		return Leaderboard{}, err
	}
	var c boardChange
	if err := c.setDefinition(1, &d); err != nil {
		return Leaderboard{}, err
	}
	c.setCreated(now)
	for _, one := range append(added, first) {
		c.setSeason(one)
	}
	// The index first: it may name a board that is not there, but must not miss one.
	if err := s.promiseAssets(ctx, gameID, &d); err != nil {
		return Leaderboard{}, err
	}
	quotas := game.Settings.Quotas
	err = s.store.list(ctx, gameID, d.Board, quotas.Boards, now)
	if errors.Is(err, apierror.LimitReached) {
		err = quotas.Reached(games.QuotaBoards)
	}
	if err != nil {
		return Leaderboard{}, err
	}
	if err := s.store.define(ctx, gameID, d.Board, "", c); err != nil {
		return Leaderboard{}, err
	}
	s.work.Changed(gameID)
	if d.Prizes != nil { // else the leader does it within a second
		_, err := s.change(ctx, gameID, d.Board, func(b *board, now int64) (c boardChange, err error) {
			return c, s.fundOpen(ctx, b, now, &c)
		})
		if err != nil {
			slog.WarnContext(ctx, "the prizes of a new leaderboard are not funded", "game", gameID, "error", err)
		}
	}
	if b, err = s.reload(ctx, gameID, d.Board); err != nil {
		return Leaderboard{}, err
	}
	return s.viewBoard(ctx, caller, b)
}

// Patch changes a board from its next season on, and with EffectiveNow the season that is open too.
// It is for staff. If the operator promised the prizes, only the operator may change the members
// that decide who gets them. It returns invalid_request with every faulty field, version_conflict,
// and forbidden as Create does.
func (s *Service) Patch(
	ctx context.Context, caller principal.Caller, gameID int64, key string, p Patch,
) (Leaderboard, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return Leaderboard{}, err
	}
	if err := p.check(); err != nil {
		return Leaderboard{}, err
	}
	b, err := s.change(ctx, gameID, key, func(b *board, now int64) (c boardChange, err error) {
		version, old := b.newest()
		current := b.currentAt(now)
		patched := []*Definition{old}
		if p.isNow() {
			patched = append(patched, b.definitionOf(current))
		}
		if err := b.authorizePatch(caller, &p, patched...); err != nil {
			return c, err
		}
		d := old.merge(p).withDefaults()
		if err := d.check(); err != nil {
			return c, err
		}
		if p.Prizes.IsGiven {
			if err := s.checkPrizes(ctx, caller, gameID, &d); err != nil {
				return c, err
			}
			if err := s.promiseAssets(ctx, gameID, &d); err != nil {
				return c, err
			}
		}
		if p.isNow() && current.isOpenAt(now) {
			if current.definition != version { // the season keeps what else its definition has
				version++
				running := b.definitionOf(current).merge(p).withDefaults()
				if err := running.check(); err != nil {
					return c, err
				}
				b.definitions[version], current.definition = &running, version
				if err := c.setDefinition(version, &running); err != nil {
					return c, err
				}
			} else {
				current.definition = version + 1
			}
			c.setSeason(*current)
		}
		b.definitions[version+1] = &d // the newest one has the greatest version
		if err := c.setDefinition(version+1, &d); err != nil {
			return c, err
		}
		return c, b.replan(&c, now, current.number)
	})
	if err != nil {
		return Leaderboard{}, err
	}
	return s.viewBoard(ctx, caller, b)
}

// replan replaces the seasons after one by those of the newest definition.
func (b *board) replan(c *boardChange, nowMS, after int64) error {
	for len(b.seasons) > 0 && b.seasons[len(b.seasons)-1].number > after {
		c.removeSeason(b.seasons[len(b.seasons)-1].number)
		b.seasons = b.seasons[:len(b.seasons)-1]
	}
	added, err := b.extend(nowMS)
	for _, one := range added {
		c.setSeason(one)
	}
	return err
}

// EndSeason ends the current season now, and the next one begins. The next one ends when the
// schedule says, or at the first boundary of a schedule that was changed. If the season had
// prizes, the seasons until its scheduled end have none. Only staff may call it, and only the
// operator if the operator promised the prizes. It returns season_not_found, and season_closed
// for a season that is not open.
func (s *Service) EndSeason(
	ctx context.Context, caller principal.Caller, gameID int64, key string, number int64,
) (Season, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return Season{}, err
	}
	return s.endSeason(ctx, caller, gameID, key, number)
}

// endSeason is EndSeason for a caller who is staff.
func (s *Service) endSeason(
	ctx context.Context, caller principal.Caller, gameID int64, key string, number int64,
) (Season, error) {
	b, err := s.change(ctx, gameID, key, func(b *board, now int64) (c boardChange, err error) {
		current := b.find(number)
		if current == nil {
			return c, apierror.SeasonNotFound
		}
		version, d := b.newest()
		if err := b.authorizePromise(caller, "end the season", b.definitionOf(current), d); err != nil {
			return c, err
		}
		if !current.isOpenAt(now) {
			return c, apierror.SeasonClosed
		}
		next := season{
			number: number + 1, opens: now, closes: current.closes, graceMS: d.GraceSeconds * 1000, definition: version,
			buckets: b.bucketsOfNext,
		}
		switch isNew := !d.Schedule.equals(b.definitionOf(current).Schedule); {
		case isNew:
			next.closes, err = d.closeAfter(now)
		case next.closes-now < minSeasonSeconds*1000:
			next.closes, err = d.closeAfter(max(now, next.closes))
		}
		if err != nil {
			return c, err
		}
		current.closes = now
		c.setSeason(*current)
		if err := b.replanAfter(&c, now, *current, next); err != nil {
			return c, err
		}
		return c, nil
	})
	if err != nil {
		return Season{}, err
	}
	return s.viewSeason(ctx, b, b.find(number))
}

// replanAfter makes next follow current, and the seasons of the newest definition follow next.
func (b *board) replanAfter(c *boardChange, nowMS int64, current, next season) error {
	following := slices.IndexFunc(b.seasons, func(s season) bool { return s.number == current.number }) + 1
	removed := b.seasons[following:]
	b.seasons = append(slices.Clone(b.seasons[:following]), next)
	c.setSeason(next)
	added, err := b.extend(nowMS)
	if err != nil {
		return err
	}
	for _, one := range added {
		c.setSeason(one)
	}
	for _, one := range removed {
		if one.number > next.number+int64(len(added)) {
			c.removeSeason(one.number)
		}
	}
	return nil
}

// Delete hides a board at once and for good; its keys are removed in the background. It is for
// staff, and for the operator alone where the operator promised prizes that are not paid.
func (s *Service) Delete(ctx context.Context, caller principal.Caller, gameID int64, key string) error {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return err
	}
	_, err := s.change(ctx, gameID, key, func(b *board, now int64) (c boardChange, err error) {
		_, newest := b.newest()
		promises := []*Definition{newest}
		for i := range b.seasons {
			if one := &b.seasons[i]; one.owesPrizes() || one.isOpenAt(now) {
				promises = append(promises, b.definitionOf(one))
			}
		}
		if err := b.authorizePromise(caller, "delete it", promises...); err != nil {
			return c, err
		}
		c.setDeleted(now)
		return c, nil
	})
	return err
}

// Get returns a board.
func (s *Service) Get(ctx context.Context, caller principal.Caller, gameID int64, key string) (Leaderboard, error) {
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return Leaderboard{}, err
	}
	b, err := s.reload(ctx, gameID, key)
	if err != nil {
		return Leaderboard{}, err
	}
	return s.viewBoard(ctx, caller, b)
}

// List returns a page of a game's boards by their keys, and the key after which the next page
// starts, "" at the end.
func (s *Service) List(
	ctx context.Context, caller principal.Caller, gameID int64, after string, limit int,
) (page []Leaderboard, next string, err error) {
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return nil, "", err
	}
	if after != "" && !boardPattern.MatchString(after) {
		return nil, "", apierror.InvalidRequest.WithField("cursor", "format", "is not a cursor that this list gave")
	}
	boardKeys, err := s.store.listKeys(ctx, gameID)
	if err != nil {
		return nil, "", err
	}
	at, found := slices.BinarySearch(boardKeys, after)
	if found {
		at++
	}
	boards := make([]*board, 0, limit)
	for chunk := range slices.Chunk(boardKeys[at:], limit+1) {
		loaded, err := s.store.loadAll(ctx, gameID, chunk)
		if err != nil {
			return nil, "", err
		}
		boards = append(boards, slices.DeleteFunc(loaded, func(b *board) bool { return b.isDeleted })...)
		if len(boards) > limit {
			boards, next = boards[:limit], boards[limit-1].key
			break
		}
	}
	page, err = s.view(ctx, caller, boards)
	return page, next, err
}

// view returns boards as a caller sees them.
func (s *Service) view(ctx context.Context, caller principal.Caller, boards []*board) ([]Leaderboard, error) {
	now, err := s.store.now(ctx)
	if err != nil {
		return nil, err
	}
	rankings := make([]ranking, len(boards))
	for i, b := range boards {
		if boards[i], err = s.addDueSeasons(ctx, b, now); err != nil {
			return nil, err
		}
		rankings[i] = boards[i].ranking(boards[i].currentAt(now))
	}
	counts, err := s.store.countEntries(ctx, rankings...)
	if err != nil {
		return nil, err
	}
	views := make([]Leaderboard, len(boards))
	for i, b := range boards {
		current := rankings[i].season
		v := Leaderboard{
			GameID: b.gameID, Definition: *rankings[i].definition, CreatedAt: b.createdAt,
			Season: current.view(rankings[i].definition, now, counts[i]),
		}
		if caller.Role == principal.Player {
			v.Rules = nil // they would tell what a forged score must look like
		} else if version, d := b.newest(); version != current.definition {
			v.Next, v.NextFrom = d, v.Season.ClosesAt
		}
		views[i] = v
	}
	return views, nil
}

func (s *Service) viewBoard(ctx context.Context, caller principal.Caller, b *board) (Leaderboard, error) {
	views, err := s.view(ctx, caller, []*board{b})
	if err != nil {
		return Leaderboard{}, err
	}
	return views[0], nil
}

// addDueSeasons returns the board with its seasons up to a time (ms). The leader stores seasons
// ahead; a request does so only where no leader did for a while.
func (s *Service) addDueSeasons(ctx context.Context, b *board, nowMS int64) (*board, error) {
	if last := b.seasons[len(b.seasons)-1]; last.closes == 0 || nowMS < last.closes {
		return b, nil
	}
	return s.change(ctx, b.gameID, b.key, func(b *board, now int64) (c boardChange, err error) {
		added, err := b.extend(cmp.Or(max(now, nowMS), nowMS))
		for _, one := range added {
			c.setSeason(one)
		}
		return c, err
	})
}

func (s *Service) viewSeason(ctx context.Context, b *board, one *season) (Season, error) {
	now, err := s.store.now(ctx)
	if err != nil {
		return Season{}, err
	}
	counts, err := s.store.countEntries(ctx, b.ranking(one))
	if err != nil {
		return Season{}, err
	}
	return one.view(b.definitionOf(one), now, counts[0]), nil
}

// ListSeasons returns a page of the stored seasons that have begun, newest first, and the number
// before which the next page starts, or 0 on the last page.
func (s *Service) ListSeasons(
	ctx context.Context, caller principal.Caller, gameID int64, key string, before int64, limit int,
) (page []Season, next int64, err error) {
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return nil, 0, err
	}
	b, err := s.reload(ctx, gameID, key)
	if err != nil {
		return nil, 0, err
	}
	now, err := s.store.now(ctx)
	if err != nil {
		return nil, 0, err
	}
	if b, err = s.addDueSeasons(ctx, b, now); err != nil {
		return nil, 0, err
	}
	var rankings []ranking
	for i := len(b.seasons) - 1; i >= 0; i-- {
		one := &b.seasons[i]
		if one.number > b.currentAt(now).number || before != 0 && one.number >= before {
			continue
		}
		if len(rankings) == limit {
			next = rankings[limit-1].season.number
			break
		}
		rankings = append(rankings, b.ranking(one))
	}
	counts, err := s.store.countEntries(ctx, rankings...)
	if err != nil {
		return nil, 0, err
	}
	page = make([]Season, len(rankings))
	for i, r := range rankings {
		page[i] = r.season.view(r.definition, now, counts[i])
	}
	return page, next, nil
}

// SetHidden takes a player's entry out of the order of the current season, or of another one, or
// puts it back. The player still sees an own rank. It is for staff. Where the operator promised the
// prizes it is for the operator alone once the season takes no score any more, and from the start
// when players alone write: a server key could take away all entries but that of a friend. It
// returns entry_not_found and season_not_found.
func (s *Service) SetHidden(
	ctx context.Context, caller principal.Caller, gameID int64, key string, seasonNumber, userID int64, hidden bool,
) (Entry, error) {
	r, err := s.manageEntry(ctx, caller, gameID, key, seasonNumber)
	if err != nil {
		return Entry{}, err
	}
	if err := s.store.hide(ctx, r.board, r.season, userID, hidden); err != nil {
		return Entry{}, err
	}
	return s.readEntry(ctx, r, userID, true)
}

// Remove removes a player's entry from a season, and returns the entry as it was. Only staff may
// call it. It returns entry_not_found and season_not_found.
func (s *Service) Remove(
	ctx context.Context, caller principal.Caller, gameID int64, key string, seasonNumber, userID int64,
) (Entry, error) {
	r, err := s.manageEntry(ctx, caller, gameID, key, seasonNumber)
	if err != nil {
		return Entry{}, err
	}
	entry, err := s.readEntry(ctx, r, userID, true)
	if err != nil {
		return Entry{}, err
	}
	return entry, s.store.remove(ctx, r.board, r.season, userID)
}

func (s *Service) manageEntry(
	ctx context.Context, caller principal.Caller, gameID int64, key string, seasonNumber int64,
) (ranking, error) {
	if err := s.authorizeManage(ctx, caller, gameID); err != nil {
		return ranking{}, err
	}
	r, err := s.findRanking(ctx, gameID, key, Scope{Season: seasonNumber})
	switch {
	case err != nil || isOfTournament(key):
		return r, err
	case r.season.isOver(time.Now().UnixMilli()):
		return r, r.board.authorizePromise(caller, "change the entries of a season that is over", r.definition)
	case r.definition.isOfPlayersAlone():
		return r, r.board.authorizePromise(caller, "change entries that players alone make", r.definition)
	}
	return r, nil
}

// DeletePlayer removes every entry of the calling player, also those of past seasons. A call that
// failed halfway is completed by the next one.
func (s *Service) DeletePlayer(ctx context.Context, caller principal.Caller) error {
	if caller.Role != principal.Player {
		return apierror.Forbidden
	}
	boardKeys, err := s.store.userBoards(ctx, caller.UserID)
	if err != nil {
		return err
	}
	boards, err := s.store.loadAll(ctx, caller.GameID, boardKeys)
	if err != nil {
		return err
	}
	for _, b := range boards {
		for i := range b.seasons {
			if err := s.store.remove(ctx, b, &b.seasons[i], caller.UserID); err != nil {
				return err
			}
		}
		s.entered.Remove(enteredBoard{boardID{b.gameID, b.key}, caller.UserID})
	}
	return s.store.dropUserBoards(ctx, caller.UserID)
}
