package handlers

import (
	"cmp"
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
)

// checkGameAccess returns game_not_found when there is no such game or the caller may not see it.
func (s *Server) checkGameAccess(r *request, game int64) error {
	if !r.caller.CanAccessGame(game) {
		return apierror.GameNotFound
	}
	_, err := s.Games.Find(r.ctx(), game)
	return err
}

// authorizedPathGame returns the game in the path, or game_not_found.
func (s *Server) authorizedPathGame(r *request) (int64, error) {
	game := r.id("gameId")
	return game, s.checkGameAccess(r, game)
}

// visiblePathUser returns the player in the path, or user_not_found when the caller may not see
// it.
func (s *Server) visiblePathUser(r *request) (users.User, error) {
	return s.Users.Get(r.ctx(), r.caller, r.id("userId"))
}

// Games.

// gameView is a game as operators and its own server see it.
type gameView struct {
	ID           int64                 `json:"id"`
	Name         string                `json:"name"`
	Origins      []string              `json:"origins"`
	WelcomeGrant *grantView            `json:"welcomeGrant"`
	Settings     games.Settings        `json:"settings"`
	ServerKeys   []games.ServerKeyInfo `json:"serverKeys"`
	CreatedAt    time.Time             `json:"createdAt"`
	Version      int64                 `json:"version"`
}

// gameWithUseView is a game with what it has of what bounds it.
type gameWithUseView struct {
	gameView
	Use map[games.QuotaName]useView `json:"use"`
}

// useView is the amount that a game has of one kind.
type useView struct {
	Used int64 `json:"used"`
	Max  int64 `json:"max"` // 0 for bytes: the operator set none
}

type grantView struct {
	TokenID     string         `json:"tokenId"`
	Amount      wallet.Amount  `json:"amount"`
	AmountUnits wallet.Units   `json:"amountUnits,string"`
	For         games.GrantFor `json:"for"`
}

type gameWithKeyView struct {
	Game      gameView `json:"game"`
	ServerKey string   `json:"serverKey"`
}

// newGameView returns the view of a game. Its grant has the decimals of the token.
func (s *Server) newGameView(r *request, g games.Game) (gameView, error) {
	v := gameView{
		ID: g.ID, Name: g.Name, Origins: g.Origins, Settings: g.Settings, ServerKeys: g.ServerKeys(),
		CreatedAt: g.CreatedAt, Version: g.Version,
	}
	if g.SignupGrant == nil {
		return v, nil
	}
	t, err := s.Wallet.FindToken(r.ctx(), g.ID, g.SignupGrant.TokenCode)
	units := wallet.Units(g.SignupGrant.Units)
	v.WelcomeGrant = &grantView{
		TokenID: t.Code, Amount: t.AmountOf(units), AmountUnits: units,
		For: cmp.Or(g.SignupGrant.For, games.GrantForLinked),
	}
	return v, err
}

func (s *Server) gameResponse(r *request, g games.Game, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	v, err := s.newGameView(r, g)
	return okResponse(&v), err
}

func (s *Server) gameWithKeyResponse(r *request, g games.Game, key string, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	v, err := s.newGameView(r, g)
	return createdResponse(&gameWithKeyView{Game: v, ServerKey: key}), err
}

type grantInput struct {
	TokenID string             `json:"tokenId"`
	Amount  wallet.AmountInput `json:"amount"`
	For     games.GrantFor     `json:"for" given:"nonzero"`
}

// toDomain returns the input of games, or nil for none.
func (in *grantInput) toDomain() *games.SignupGrantInput {
	if in == nil {
		return nil
	}
	return &games.SignupGrantInput{TokenCode: in.TokenID, DecimalAmount: string(in.Amount), For: in.For}
}

type gameInput struct {
	Name         string              `json:"name"`
	Origins      []string            `json:"origins"`
	WelcomeGrant *grantInput         `json:"welcomeGrant"`
	Settings     games.SettingsPatch `json:"settings"`
}

func (s *Server) createGame(r *request, in *gameInput) (response, error) {
	g, key, err := s.Games.Create(r.ctx(), r.caller, games.Definition{
		Name: in.Name, Origins: in.Origins, SignupGrant: in.WelcomeGrant.toDomain(), Settings: in.Settings,
	})
	return s.gameWithKeyResponse(r, g, key, err)
}

func (s *Server) listGames(r *request) (response, error) {
	q := r.query()
	after, limit := q.afterID(), q.limit()
	if err := q.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Games.List(r.ctx(), r.caller, after, limit)
	if err != nil {
		return response{}, err
	}
	views := make([]gameView, len(list))
	for i, g := range list {
		if views[i], err = s.newGameView(r, g); err != nil {
			return response{}, err
		}
	}
	return okResponse(newPage(views, next)), nil
}

func (s *Server) getGame(r *request) (response, error) {
	g, use, err := s.Games.GetWithUse(r.ctx(), r.caller, r.id("gameId"))
	if err != nil {
		return response{}, err
	}
	game, err := s.newGameView(r, g)
	v := gameWithUseView{gameView: game, Use: make(map[games.QuotaName]useView, len(use))}
	for name, used := range use {
		v.Use[name] = useView{used, g.Settings.Quotas.Of(name)}
	}
	return okResponse(&v), err
}

// readPathGame returns a game without its use, which changes all the time.
func (s *Server) readPathGame(r *request) (response, error) {
	g, err := s.Games.Get(r.ctx(), r.caller, r.id("gameId"))
	return s.gameResponse(r, g, err)
}

type gamePatch struct {
	Version      int64                     `json:"version"`
	Name         *string                   `json:"name"`
	Origins      *[]string                 `json:"origins"`
	WelcomeGrant wire.Nullable[grantInput] `json:"welcomeGrant,omitzero"`
	Settings     games.SettingsPatch       `json:"settings"`
}

func (in *gamePatch) Validate() error {
	if in.Version < 0 {
		return apierror.InvalidRequest.WithField("version", "range", "must not be negative")
	}
	return nil
}

func (s *Server) patchGame(r *request, in *gamePatch) (response, error) {
	p := games.PatchInput{Version: in.Version, Name: in.Name, Origins: in.Origins, Settings: in.Settings}
	if in.WelcomeGrant.IsGiven {
		p.SignupGrant = wire.Given(in.WelcomeGrant.Value.toDomain())
	}
	g, err := s.Games.Patch(r.ctx(), r.caller, r.id("gameId"), p)
	return s.gameResponse(r, g, err)
}

func (s *Server) addServerKey(r *request) (response, error) {
	g, key, err := s.Games.AddServerKey(r.ctx(), r.caller, r.id("gameId"))
	return s.gameWithKeyResponse(r, g, key, err)
}

func (s *Server) revokeServerKey(r *request) (response, error) {
	g, err := s.Games.RevokeServerKey(r.ctx(), r.caller, r.id("gameId"), r.Param("keyId"))
	return s.gameResponse(r, g, err)
}

// Assets.

func (s *Server) createAsset(r *request, game int64, in *assets.CreateInput) (response, error) {
	a, err := s.Assets.Create(r.ctx(), r.caller, game, *in)
	return createdResponse(&a), err
}

func (s *Server) listAssets(r *request) (response, error) {
	q := r.query()
	query := assets.ListQuery{After: q.afterID(), Limit: q.limit(), IncludeInactive: true}
	if err := q.err(); err != nil {
		return response{}, err
	}
	return s.assetPageResponse(r, r.id("gameId"), query)
}

func (s *Server) getAsset(r *request, game int64) (response, error) {
	a, err := s.Assets.Get(r.ctx(), r.caller, game, r.id("assetId"))
	return okResponse(&a), err
}

func (s *Server) patchAsset(r *request, game int64, in *assets.PatchInput) (response, error) {
	a, err := s.Assets.Patch(r.ctx(), r.caller, game, r.id("assetId"), *in)
	return okResponse(&a), err
}

func (s *Server) deleteAsset(r *request, game int64) (response, error) {
	return response{status: http.StatusNoContent}, s.Assets.Delete(r.ctx(), r.caller, game, r.id("assetId"))
}

// Tokens.

func (s *Server) createToken(r *request, in *wallet.TokenDefinition) (response, error) {
	t, err := s.Wallet.CreateToken(r.ctx(), r.caller, *in)
	return createdResponse(newTokenView(t)), err
}

// tokenView is a token as the operator sees it.
type tokenView struct {
	wallet.Token
	Games []gameMintLimit `json:"games"`
}

// gameMintLimit is how much of a token a game may mint in a day.
type gameMintLimit struct {
	GameID          int64         `json:"gameId"`
	MintLimitPerDay wallet.Amount `json:"mintLimitPerDay"`
}

func newTokenView(t wallet.Token) *tokenView {
	v := &tokenView{t, make([]gameMintLimit, len(t.Games))}
	for i, g := range t.Games {
		v.Games[i] = gameMintLimit{g.GameID, t.AmountOf(g.DayLimit)}
	}
	return v
}

// allGames stands for every game where a game id selects an economy: amounts are summed.
const allGames = 0

func (s *Server) listTokens(r *request) (response, error) {
	list, err := s.Wallet.Tokens(r.ctx(), allGames)
	views := make([]*tokenView, len(list))
	for i, t := range list {
		views[i] = newTokenView(t)
	}
	return okResponse(newPage(views, 0)), err
}

func (s *Server) getToken(r *request) (response, error) {
	t, err := s.Wallet.FindToken(r.ctx(), allGames, r.Param("tokenId"))
	return okResponse(newTokenView(t)), err
}

type tokenPatch struct {
	Name     *string               `json:"tokenName"`
	LogoURL  wire.Nullable[string] `json:"logoUrl,omitzero"`
	Metadata struct {
		AssetName *string `json:"assetName"`
		PolicyID  *string `json:"policyId"`
	} `json:"metadata"`
	Games *[]wallet.TokenGameInput `json:"games"`
}

func (s *Server) patchToken(r *request, in *tokenPatch) (response, error) {
	t, err := s.Wallet.PatchToken(r.ctx(), r.caller, r.Param("tokenId"), wallet.TokenPatch{
		Name: in.Name, LogoURL: toPatch(in.LogoURL), AssetName: in.Metadata.AssetName, PolicyID: in.Metadata.PolicyID,
		Games: in.Games,
	})
	return okResponse(newTokenView(t)), err
}

// Players.

func (s *Server) getUser(r *request, u users.User) (response, error) {
	balances, err := s.Wallet.ReadBalances(r.ctx(), u.GameID, u.ID)
	body := struct {
		User         *playerView      `json:"user"`
		Balances     []wallet.Balance `json:"balances"`
		DisputesLost *int64           `json:"disputesLost,omitempty"` // nil: the caller is not the operator
	}{User: newPlayerView(u), Balances: balances.Balances}
	if err == nil && r.caller.Role == principal.Operator {
		var lost int64
		lost, err = s.Rooms.CountDisputesLost(r.ctx(), r.caller, u.GameID, u.ID)
		body.DisputesLost = &lost
	}
	return okResponse(body), err
}

// playerView is a player as staff sees it.
type playerView struct {
	accountView
	Suspended *suspensionView `json:"suspended"` // null: the player is not
}

type suspensionView struct {
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"` // null: until it is lifted
}

func newPlayerView(u users.User) *playerView {
	v := &playerView{accountView: newAccountView(u)}
	if s := u.Suspended(time.Now()); s != nil {
		v.Suspended = &suspensionView{Reason: s.Reason}
		if !s.Until.IsZero() {
			v.Suspended.Until = &s.Until
		}
	}
	return v
}

type suspensionInput struct {
	Reason string     `json:"reason" required:"true"`
	Until  *time.Time `json:"until"`
}

func (s *Server) suspendUser(r *request, in *suspensionInput) (response, error) {
	suspension := users.Suspension{Reason: in.Reason}
	if in.Until != nil {
		suspension.Until = *in.Until
	}
	u, err := s.Accounts.Suspend(r.ctx(), r.caller, r.id("userId"), suspension)
	return okResponse(newPlayerView(u)), err
}

func (s *Server) unsuspendUser(r *request) (response, error) {
	u, err := s.Accounts.Unsuspend(r.ctx(), r.caller, r.id("userId"))
	return okResponse(newPlayerView(u)), err
}

func (s *Server) endUserSessions(r *request) (response, error) {
	return response{status: http.StatusNoContent}, s.Accounts.EndSessions(r.ctx(), r.caller, r.id("userId"))
}

type adjustmentInput struct {
	TokenID string             `json:"tokenId" required:"true"`
	Amount  wallet.AmountInput `json:"amount" required:"true"`
	Reason  string             `json:"reason" required:"true"`
}

func (s *Server) creditUser(r *request, in *adjustmentInput) (response, error) {
	change, err := s.Wallet.Credit(r.ctx(), r.caller, wallet.CreditInput{
		UserID: r.id("userId"), TokenCode: in.TokenID, Amount: in.Amount, Reason: in.Reason,
	}, r.receipt)
	return okResponse(&change).withReplayed(change.Replayed), err
}

func (s *Server) debitUser(r *request, in *adjustmentInput) (response, error) {
	change, err := s.Wallet.Debit(r.ctx(), r.caller, wallet.DebitInput{
		UserID: r.id("userId"), TokenCode: in.TokenID, Amount: in.Amount, Reason: in.Reason,
	}, r.receipt)
	return okResponse(&change).withReplayed(change.Replayed), err
}

// Audit.

// auditWallets reports on the economy of the game that the query names, or on all of them.
func (s *Server) auditWallets(r *request) (response, error) {
	q := r.query()
	game := q.id("gameId")
	if err := q.err(); err != nil {
		return response{}, err
	}
	if game != allGames {
		if err := s.checkGameAccess(r, game); err != nil {
			return response{}, err
		}
	}
	report, err := s.Audit.Audit(r.clientCtx(), game)
	return response{status: http.StatusOK, body: &report}, err
}

// acceptAuditInput lets the money of a game go on.
type acceptAuditInput struct {
	Reason string `json:"reason"`
}

// acceptedAuditView has the differences that an operator accepted.
type acceptedAuditView struct {
	GameID   int64                  `json:"gameId"`
	Accepted []audit.AcceptedDefect `json:"accepted"`
}

func (s *Server) acceptAudit(r *request, in *acceptAuditInput) (response, error) {
	game := r.id("gameId")
	if err := s.checkGameAccess(r, game); err != nil {
		return response{}, err
	}
	accepted, err := s.Alarm.Accept(r.ctx(), r.caller, game, in.Reason)
	return okResponse(&acceptedAuditView{game, accepted}), err
}
