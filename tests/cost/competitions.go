package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/rooms"
)

// competitions are leaderboards, tournaments and prizes on the store of a fixture.
type competitions struct {
	boards      *leaderboards.Service
	tournaments *tournaments.Service
	prizes      *prizes.Service
	names       int // of boards and of sources of prizes that were used
}

func (f *fixture) startCompetitions(db *redisdb.DB) {
	f.boards = leaderboards.New(db, f, f, leaderboards.Options{})
	f.prizes = prizes.New(db, f.wallet)
	f.tournaments = tournaments.New(db, tournaments.Deps{
		Wallets: f.wallet, Players: f, Games: f, Rooms: f.rooms, Prizes: f.prizes, Boards: f.boards,
	}, tournaments.Options{})
}

// nextName returns a name that was not used before.
func (c *competitions) nextName() string {
	c.names++
	return "b" + strconv.Itoa(c.names)
}

// createBoard returns the key of a new leaderboard.
func (f *fixture) createBoard(ctx context.Context) (string, error) {
	key := f.nextName()
	_, err := f.boards.Create(ctx, operator, f.GameID, leaderboards.Definition{Board: key, Name: "Top"})
	return key, err
}

// score gives a player a score.
func (f *fixture) score(ctx context.Context, board string, p principal.Caller, score int) error {
	server := f.Server()
	in := leaderboards.SubmitInput{UserID: p.UserID, Score: leaderboards.ScoreInput(strconv.Itoa(score))}
	_, err := f.boards.Submit(ctx, server, f.GameID, board, in, noReceipt)
	return err
}

// startFeeding starts a paid room of players first to first+roomSeats-1 whose end feeds a
// leaderboard.
func (f *fixture) startFeeding(ctx context.Context, first int) (roomID string, err error) {
	f.Settings.Boards = []games.BoardFeed{{Board: "top", From: games.FromWin}}
	room, err := f.create(ctx, f.player(first), roomSeats, noReceipt)
	f.Settings.Boards = nil
	if err != nil {
		return "", err
	}
	for seat := 1; seat < roomSeats; seat++ {
		if err := f.join(ctx, f.player(first+seat), room.RoomID, noReceipt); err != nil {
			return "", err
		}
	}
	return room.RoomID, f.start(ctx, f.player(first), room.RoomID, noReceipt)
}

// planPrizes mints prizes for the first players and stores who gets what.
func (f *fixture) planPrizes(ctx context.Context, winners int) (source string, err error) {
	source = "board:" + f.nextName() + ":1"
	lines := make([]prizes.Line, winners)
	for i := range lines {
		lines[i] = prizes.Line{UserID: f.player(i).UserID, Place: i + 1, Units: 100}
	}
	units := wallet.Units(100 * winners)
	if ok, err := f.prizes.Fund(ctx, f.GameID, source, f.gold, units, prizes.Mint, "op"); !ok || err != nil {
		return "", fmt.Errorf("the prizes are funded: %v, %w", ok, err)
	}
	return source, f.prizes.Plan(ctx, f.GameID, source, lines)
}

func (f *fixture) pay(ctx context.Context, source string) error {
	_, err := f.prizes.Pay(ctx, f.GameID, source)
	return err
}

// createTournament returns the id of a paid Swiss tournament.
func (f *fixture) createTournament(ctx context.Context) (int64, error) {
	r, err := f.tournaments.Create(ctx, operator, f.GameID, tournaments.CreateInput{
		Name: "Cup", Format: tournaments.FormatSwiss, EntryTokenID: f.gold.ID, EntryFee: "2.50", MaxEntrants: 4096,
		StartsAt: new(time.Now().Add(time.Hour)), Payout: []int{6000, 4000},
	}, noReceipt)
	return r.Tournament.ID, err
}

func (f *fixture) enter(ctx context.Context, id int64, p principal.Caller) error {
	_, err := f.tournaments.Join(ctx, p, f.GameID, id, noReceipt)
	return err
}

// startRound returns the matches of the first round of a tournament whose rooms are open.
func (f *fixture) startRound(ctx context.Context, matches int) ([]match, error) {
	id, err := f.createTournament(ctx)
	for i := 0; i < 2*matches && err == nil; i++ {
		err = f.enter(ctx, id, f.player(i))
	}
	if err == nil {
		_, err = f.tournaments.Start(ctx, operator, f.GameID, id, noReceipt)
	}
	if err != nil {
		return nil, err
	}
	const looks = 100 // a leader does a part of the work at once
	for range looks {
		if err := f.tournaments.RunOnce(ctx); err != nil {
			return nil, err
		}
		list, _, err := f.tournaments.Matches(ctx, operator, f.GameID, id, 1, "", matches)
		if err != nil {
			return nil, err
		}
		var open []match
		for _, m := range list {
			if m.Status == tournaments.MatchReady {
				open = append(open, match{id, m})
			}
		}
		if len(open) == matches {
			return open, nil
		}
	}
	return nil, errors.New("the leader does not open the rooms of the matches")
}

// match is a match of a tournament.
type match struct {
	tournamentID int64
	tournaments.Match
}

// end reports that the first player has won in the room of a match.
func (f *fixture) end(ctx context.Context, m match) error {
	ended := rooms.Ended{
		RoomID: *m.RoomID, GameID: f.GameID, Status: rooms.Finished, StartedAt: time.Now(), EndedAt: time.Now(),
		Consumer: fmt.Sprintf("%s%d.%s.%d", rooms.MatchConsumerPrefix, m.tournamentID, m.ID, m.Attempt),
	}
	for i, p := range m.Players {
		ended.Places = append(ended.Places, rooms.Place{UserID: p.UserID, Place: i + 1})
	}
	return f.tournaments.RoomEnded(ctx, ended)
}

const (
	matchesOfRound = 60 + warmUps
	manyPrizes     = 100
)

// competitionStage is what the calls of competitions find.
type competitionStage struct {
	board        string
	feedingRooms []string // room ids
	sources      []string // of prizes
	tournamentID int64
	matches      []match
}

// competitionCalls lists what is counted of competitions. Each prepares what it needs.
var competitionCalls = []call{
	{
		name:   "finish of 8 that feeds a leaderboard",
		keyUse: neverKeyed,
		promise: "The same as finish of 8, and an entry in the outbox, so that the leaderboard has the room exactly once " +
			"whoever dies.",
		prepare: func(ctx context.Context, s *stage, i int) error {
			id, err := s.startFeeding(ctx, hostIndex(i))
			s.feedingRooms = append(s.feedingRooms, id)
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error {
			return s.finish(ctx, hostIndex(i), s.feedingRooms[i], noReceipt)
		},
	},
	{
		name:   "score that moves an entry",
		keyUse: neverKeyed,
		promise: "The score is in the season of its time, in the one order of all players, after those who had it before, " +
			"and whoever watches the first 100 is shown it.",
		prepare: func(ctx context.Context, s *stage, i int) (err error) {
			if i == 0 {
				s.board, err = s.createBoard(ctx)
			}
			return errors.Join(err, s.score(ctx, s.board, s.player(i), i))
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.score(ctx, s.board, s.player(i), 1000+i) },
	},
	{
		name:   "join a tournament",
		keyUse: neverKeyed,
		promise: "The player is an entrant, the fee is in escrow, the ledger and the player's lines have it, and those who " +
			"watch are notified, in one step.",
		prepare: func(ctx context.Context, s *stage, i int) (err error) {
			if i == 0 {
				s.tournamentID, err = s.createTournament(ctx)
			}
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.enter(ctx, s.tournamentID, s.player(i)) },
	},
	{
		name:    "report of a match",
		keyUse:  neverKeyed,
		most:    matchesOfRound - warmUps,
		promise: "The match is decided once, by its current attempt, and those who watch are notified.",
		prepare: func(ctx context.Context, s *stage, i int) (err error) {
			if i == 0 {
				s.matches, err = s.startRound(ctx, matchesOfRound)
			}
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.end(ctx, s.matches[i]) },
	},
	{
		name:    "pay one prize",
		keyUse:  neverKeyed,
		promise: "The prize is paid once, in the order of the plan, and the player has a line and a message.",
		prepare: func(ctx context.Context, s *stage, i int) error {
			source, err := s.planPrizes(ctx, 1)
			s.sources = append(s.sources, source)
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.pay(ctx, s.sources[i]) },
	},
	{
		name:    fmt.Sprintf("pay %d prizes", manyPrizes),
		keyUse:  neverKeyed,
		most:    10,
		promise: "The same for each of the players, in one step.",
		prepare: func(ctx context.Context, s *stage, i int) error {
			if i == 0 {
				s.sources = nil
			}
			source, err := s.planPrizes(ctx, manyPrizes)
			s.sources = append(s.sources, source)
			return err
		},
		run: func(ctx context.Context, s *stage, i int) error { return s.pay(ctx, s.sources[i]) },
	},
}
