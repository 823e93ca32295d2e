package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

// seededGameName is the name of the example game.
const seededGameName = "Arcade"

// seededDayLimit bounds the credits of the game's server key in a day, of each token.
const seededDayLimit = "1000000"

var (
	seededTokens = []wallet.TokenDefinition{
		{Code: "GOLD", Name: "Gold", Metadata: wallet.Metadata{Decimals: "2"}},
		{Code: "GEM", Name: "Gem", Metadata: wallet.Metadata{Decimals: "0"}},
	}
	seededAssets = []assets.CreateInput{
		{Name: "Wooden sword", TokenCode: "GOLD", Price: "2.50", Metadata: []byte(`{"kind":"weapon"}`)},
		{
			Name: "Lantern", TokenCode: "GOLD", Price: "12.99", PerUserLimit: new(int64(1)),
			Metadata: []byte(`{"kind":"tool"}`),
		},
		{Name: "Crown", TokenCode: "GEM", Price: "40", Stock: new(int64(10)), Metadata: []byte(`{"kind":"hat"}`)},
	}
	seededBoard = leaderboards.Definition{
		Board: "weekly", Name: "Best of the week",
		Writers:  leaderboards.Writers{leaderboards.WriterServer, leaderboards.WriterPlayers},
		Schedule: &leaderboards.Schedule{Cron: "0 0 * * 1", TimeZone: "UTC"},
	}
	seededScores = map[string]leaderboards.ScoreInput{"ada": "1250", "bob": "980", "cleo": "1100"}

	// seededTournament can be joined for as long as anybody looks at an example. When its time comes
	// with fewer players than two, it is cancelled and the fee goes back.
	seededTournament = tournaments.CreateInput{
		Name: "Open cup", Format: tournaments.FormatElimination, EntryFee: "2.50", Payout: []int{7_000, 3_000},
		MaxEntrants: 8,
	}
	seededRegistration = 30 * 24 * time.Hour

	seededPlayers  = []string{"ada", "bob", "cleo"}
	seededBalances = map[string]wallet.AmountInput{"GOLD": "100.00", "GEM": "50"}
)

// seedResult has the records that seed created or found.
type seedResult struct {
	game         games.Game
	serverKey    string // "" when the game existed: a key is shown once
	stakeTokenID int64  // id of a token of which every player has some
	players      []seededPlayer
	board        string // key of a leaderboard
	tournament   tournaments.Tournament
}

type seededPlayer struct {
	id   int64
	name string
}

// tokenVariable returns the name of a shell variable for the player's token.
func (p seededPlayer) tokenVariable() string { return strings.ToUpper(p.name) + "_TOKEN" }

var operator = principal.Caller{Role: principal.Operator}

// seed creates a game with tokens, assets, players, a leaderboard and a tournament. It creates only
// the parts that are missing, so it is idempotent. origins are the origins of a new game.
func (d domains) seed(ctx context.Context, origins ...string) (seedResult, error) {
	var s seedResult
	for _, t := range seededTokens {
		if _, err := d.wallet.CreateToken(ctx, operator, t); err != nil && !errors.Is(err, apierror.TokenCodeTaken) {
			return s, fmt.Errorf("seed the token %s: %w", t.Code, err)
		}
	}
	var err error
	if s.game, s.serverKey, err = d.seedGame(ctx, origins); err != nil {
		return s, fmt.Errorf("seed the game: %w", err)
	}
	for _, t := range seededTokens {
		if err := d.giveToken(ctx, t.Code, s.game.ID); err != nil {
			return s, fmt.Errorf("seed the games of the token %s: %w", t.Code, err)
		}
	}
	stakeToken, err := d.wallet.FindToken(ctx, s.game.ID, seededTokens[0].Code)
	if err != nil {
		return s, fmt.Errorf("seed the tokens: %w", err)
	}
	s.stakeTokenID = stakeToken.ID
	everyAsset := assets.ListQuery{Limit: wire.MaxPageSize, IncludeInactive: true}
	existing, _, err := d.assets.List(ctx, operator, s.game.ID, everyAsset)
	if err != nil {
		return s, fmt.Errorf("seed the assets: %w", err)
	}
	for _, a := range seededAssets {
		if slices.ContainsFunc(existing, func(x assets.Asset) bool { return x.Name == a.Name }) {
			continue
		}
		if _, err := d.assets.Create(ctx, operator, s.game.ID, a); err != nil {
			return s, fmt.Errorf("seed the asset %s: %w", a.Name, err)
		}
	}
	for _, name := range seededPlayers {
		p, err := d.seedPlayer(ctx, s.game.ID, name)
		if err != nil {
			return s, fmt.Errorf("seed the player %s: %w", name, err)
		}
		s.players = append(s.players, p)
	}
	if err := d.seedBoard(ctx, s.game.ID, s.players); err != nil {
		return s, fmt.Errorf("seed the leaderboard: %w", err)
	}
	s.board = seededBoard.Board
	if s.tournament, err = d.seedTournament(ctx, s.game.ID, s.stakeTokenID); err != nil {
		return s, fmt.Errorf("seed the tournament: %w", err)
	}
	return s, nil
}

// seedTournament returns the example tournament, and creates another one when the last has ended or
// is about to.
func (d domains) seedTournament(ctx context.Context, game, token int64) (tournaments.Tournament, error) {
	last, err := d.findTournament(ctx, game, seededTournament.Name)
	if err != nil || last.ID != 0 && !last.Status.Ended() && last.Status != tournaments.Cancelling {
		return last, err
	}
	in := seededTournament
	in.EntryTokenID, in.StartsAt = token, new(time.Now().Add(seededRegistration))
	// The receipt makes two seeds at once one.
	receipt := idempotency.Receipt{KeyDigest: fmt.Sprintf("seed:tournament:%d", last.ID), Fingerprint: "seed"}
	result, err := d.tours.Create(ctx, operator, game, in, receipt)
	return result.Tournament, err
}

// findTournament returns the newest tournament with a name, without an id when there is none.
func (d domains) findTournament(ctx context.Context, game int64, name string) (tournaments.Tournament, error) {
	query := tournaments.ListQuery{GameID: game, Limit: wire.MaxPageSize}
	for {
		page, next, err := d.tours.List(ctx, operator, query)
		if err != nil {
			return tournaments.Tournament{}, err
		}
		for _, t := range page {
			if t.Name == name {
				return t, nil
			}
		}
		if query.After = next; next == 0 {
			return tournaments.Tournament{}, nil
		}
	}
}

// seedBoard creates the leaderboard, with a score of each player without one in its season.
func (d domains) seedBoard(ctx context.Context, game int64, players []seededPlayer) error {
	_, err := d.boards.Create(ctx, operator, game, seededBoard)
	if err != nil && !errors.Is(err, apierror.BoardExists) {
		return err
	}
	key := seededBoard.Board
	for _, p := range players {
		_, err := d.boards.GetEntry(ctx, operator, game, key, leaderboards.Scope{}, p.id)
		if !errors.Is(err, apierror.EntryNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		score := leaderboards.SubmitInput{UserID: p.id, Score: seededScores[p.name]}
		if _, err := d.boards.Submit(ctx, operator, game, key, score, idempotency.Receipt{}); err != nil {
			return err
		}
	}
	return nil
}

// giveToken lets the server keys of a game credit and debit a token that no game has.
func (d domains) giveToken(ctx context.Context, code string, gameID int64) error {
	t, err := d.wallet.FindToken(ctx, gameID, code)
	if err != nil || len(t.Games) > 0 {
		return err
	}
	games := []wallet.TokenGameInput{{GameID: gameID, MintLimitPerDay: seededDayLimit}}
	_, err = d.wallet.PatchToken(ctx, operator, code, wallet.TokenPatch{Games: &games})
	return err
}

// seedGame returns the game with the name of the example, and creates it when there is none.
func (d domains) seedGame(ctx context.Context, origins []string) (games.Game, string, error) {
	for after := int64(0); ; {
		page, next, err := d.games.List(ctx, operator, after, wire.MaxPageSize)
		if err != nil {
			return games.Game{}, "", err
		}
		for _, g := range page {
			if g.Name == seededGameName {
				return g, "", nil
			}
		}
		if next == 0 {
			return d.games.Create(ctx, operator, games.Definition{
				Name: seededGameName, Origins: origins, SignupGrant: &games.SignupGrantInput{
					TokenCode: seededTokens[0].Code, DecimalAmount: "100.00", For: games.GrantForAny,
				},
				// The examples of the documents have rooms of both kinds, and one has a board as shared state.
				Settings: games.SettingsPatch{
					StateKeys:   &games.StateKeys{"cells.": games.WriterOwner},
					Settlements: &[]games.Settlement{games.SettledByServer, games.SettledByConsensus},
				},
			})
		}
		after = next
	}
}

func (d domains) seedPlayer(ctx context.Context, game int64, name string) (seededPlayer, error) {
	session, err := d.auth.Exchange(
		ctx,
		principal.Caller{Role: principal.Server, GameID: game},
		auth.ExchangeInput{ServerSideID: "seed-" + name, Username: &name},
	)
	if err != nil {
		return seededPlayer{}, err
	}
	p := seededPlayer{id: session.User.ID, name: name}
	for code, amount := range seededBalances {
		// The receipt makes two seeds at once one. The ledger shows an earlier seed after the receipt has
		// expired.
		lines, err := d.wallet.Ledger(ctx, game, p.id, wallet.LedgerQuery{TokenCode: code, Limit: 1})
		if err != nil {
			return p, err
		}
		if len(lines.Lines) > 0 {
			continue
		}
		credit := wallet.CreditInput{UserID: p.id, TokenCode: code, Amount: amount, Reason: "seed"}
		receipt := idempotency.Receipt{KeyDigest: fmt.Sprintf("seed:%d:%s", p.id, code), Fingerprint: "seed"}
		if _, err := d.wallet.Credit(ctx, operator, credit, receipt); err != nil {
			return p, err
		}
	}
	return p, nil
}

func seedCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "seed", Args: cobra.NoArgs,
		Short: "Create an example game with tokens, assets, players, a leaderboard and a tournament, where they are missing",
		Long: "seed creates the installation too where the store is empty, as the first node does: --room-shards must be\n" +
			"that of the nodes.",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeTool, "redis-url", "signing-key")
			if err != nil {
				return err
			}
			db, installation, err := openAnyStore(c.Context(), s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			if err := makeInstallation(c.Context(), db, installation, s.RoomShards); err != nil {
				return err
			}
			example, err := newDomains(db, nil, s, config.ModeTool).seed(c.Context())
			if err == nil {
				example.print(c.OutOrStdout())
			}
			return err
		},
	}
	return settingFlags(c, "redis-url", "signing-key", "room-shards", "config")
}

// makeInstallation makes an empty store an installation. It returns a storeError for a store of
// another layout, and for one that nodes found empty and stopped.
func makeInstallation(ctx context.Context, db *redisdb.DB, found redisdb.Installation, roomShards int) error {
	switch {
	case found.Problem() == "":
		return nil
	case !found.IsMissing() || found.IsStopped:
		return storeError{found}
	}
	if err := db.CheckRequirements(ctx, redisdb.Requirements{FreeShards: roomShards}); err != nil {
		return err
	}
	return history.CreateInstallation(ctx, db)
}

func (s *seedResult) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "game %d %q\n", s.game.ID, s.game.Name)
	if s.serverKey != "" {
		_, _ = fmt.Fprintf(out, "server key, shown this once: %s\n", s.serverKey)
	}
	for _, p := range s.players {
		_, _ = fmt.Fprintf(out, "player %d %q\n", p.id, p.name)
	}
	_, _ = fmt.Fprintf(out, "leaderboard %q\n", s.board)
	_, _ = fmt.Fprintf(out, "tournament %d %q\n", s.tournament.ID, s.tournament.Name)
}
