package handlers

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
)

// ownGame tells whether a game is there and the caller's to see.
func (e *Server) ownGame(c *call, game int64) error {
	if !c.caller.CanAccessGame(game) {
		return apierror.GameNotFound
	}
	_, err := e.Games.Find(c.ctx(), game)
	return err
}

// pathGame is the game in the path, where the caller may act on it.
func (e *Server) pathGame(c *call) (int64, error) {
	game, err := c.pathID("gameId", apierror.GameNotFound)
	if err == nil {
		err = e.ownGame(c, game)
	}
	return game, err
}

// pathUser is the player in the path, where the caller may act on them.
func (e *Server) pathUser(c *call) (users.User, error) {
	id, err := c.pathID("userId", apierror.UserNotFound)
	if err != nil {
		return users.User{}, err
	}
	return e.Users.Get(c.ctx(), c.caller, id)
}

// Games.

// gameView is a game as operators and its server see it.
type gameView struct {
	ID           int64             `json:"id"`
	Name         string            `json:"name"`
	Origins      []string          `json:"origins"`
	WelcomeGrant *grantView        `json:"welcomeGrant"`
	Settings     games.Settings    `json:"settings"`
	ServerKeys   []games.ServerKey `json:"serverKeys"`
	CreatedAt    time.Time         `json:"createdAt"`
	Version      int64             `json:"version"`
}

type grantView struct {
	TokenID     string        `json:"tokenId"`
	Amount      wallet.Amount `json:"amount"`
	AmountUnits wallet.Units  `json:"amountUnits,string"`
}

type gameWithKey struct {
	Game      gameView `json:"game"`
	ServerKey string   `json:"serverKey"`
}

// view shows a game, its grant with the token's decimals.
func (e *Server) view(c *call, g games.Game) (gameView, error) {
	v := gameView{
		ID: g.ID, Name: g.Name, Origins: g.Origins, Settings: g.Settings, ServerKeys: g.ServerKeys(), CreatedAt: g.CreatedAt, Version: g.Version,
	}
	if g.SignupGrant == nil {
		return v, nil
	}
	t, err := e.Wallet.Token(c.ctx(), g.SignupGrant.TokenID)
	units := wallet.Units(g.SignupGrant.Units)
	v.WelcomeGrant = &grantView{TokenID: t.TokenID, Amount: t.Amount(units), AmountUnits: units}
	return v, err
}

func (e *Server) showGame(c *call, g games.Game, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	v, err := e.view(c, g)
	return ok(&v), err
}

func (e *Server) showKey(c *call, g games.Game, key string, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	v, err := e.view(c, g)
	return created(&gameWithKey{Game: v, ServerKey: key}), err
}

type grantInput struct {
	TokenID string             `json:"tokenId"`
	Amount  wallet.AmountInput `json:"amount"`
}

func (in *grantInput) domain() *games.GrantInput {
	if in == nil {
		return nil
	}
	return &games.GrantInput{TokenID: in.TokenID, Amount: string(in.Amount)}
}

type gameInput struct {
	Name         string              `json:"name"`
	Origins      []string            `json:"origins"`
	WelcomeGrant *grantInput         `json:"welcomeGrant"`
	Settings     games.SettingsPatch `json:"settings"`
}

func (e *Server) createGame(c *call, in *gameInput) (reply, error) {
	g, key, err := e.Games.Create(c.ctx(), c.caller, games.Definition{
		Name: in.Name, Origins: in.Origins, SignupGrant: in.WelcomeGrant.domain(), Settings: in.Settings,
	})
	return e.showKey(c, g, key, err)
}

func (e *Server) listGames(c *call) (reply, error) {
	q := c.query()
	after, limit := q.after(), q.limit()
	if err := q.err(); err != nil {
		return reply{}, err
	}
	list, next, err := e.Games.List(c.ctx(), c.caller, after, limit)
	if err != nil {
		return reply{}, err
	}
	views := make([]gameView, len(list))
	for i, g := range list {
		if views[i], err = e.view(c, g); err != nil {
			return reply{}, err
		}
	}
	return ok(pageOf(views, next)), nil
}

func (e *Server) getGame(c *call) (reply, error) {
	id, err := c.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return reply{}, err
	}
	g, err := e.Games.Get(c.ctx(), c.caller, id)
	return e.showGame(c, g, err)
}

type gamePatch struct {
	Version      int64                `json:"version"`
	Name         *string              `json:"name"`
	Origins      *[]string            `json:"origins"`
	WelcomeGrant nullable[grantInput] `json:"welcomeGrant,omitzero"`
	Settings     games.SettingsPatch  `json:"settings"`
}

func (e *Server) patchGame(c *call, in *gamePatch) (reply, error) {
	id, err := c.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return reply{}, err
	}
	p := games.Patch{Version: in.Version, Name: in.Name, Origins: in.Origins, Settings: in.Settings}
	if in.WelcomeGrant.Given {
		p.SignupGrant = new(in.WelcomeGrant.Value.domain())
	}
	g, err := e.Games.Patch(c.ctx(), c.caller, id, p)
	return e.showGame(c, g, err)
}

func (e *Server) addServerKey(c *call) (reply, error) {
	id, err := c.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return reply{}, err
	}
	g, key, err := e.Games.AddServerKey(c.ctx(), c.caller, id)
	return e.showKey(c, g, key, err)
}

func (e *Server) revokeServerKey(c *call) (reply, error) {
	id, err := c.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return reply{}, err
	}
	g, err := e.Games.RevokeServerKey(c.ctx(), c.caller, id, c.Param("keyId"))
	return e.showGame(c, g, err)
}

// Assets.

type assetInput struct {
	Name         string             `json:"name"`
	TokenID      string             `json:"tokenId"`
	Price        wallet.AmountInput `json:"price"`
	Stock        *int64             `json:"stock"`
	PerUserLimit *int64             `json:"perUserLimit"`
	Metadata     jsontext.Value     `json:"metadata"`
}

func (e *Server) createAsset(c *call, in *assetInput) (reply, error) {
	game, err := e.pathGame(c)
	if err != nil {
		return reply{}, err
	}
	a, err := e.Assets.Create(c.ctx(), c.caller, game, assets.CreateInput(*in))
	return created(&a), err
}

func (e *Server) listAssets(c *call) (reply, error) {
	game, err := c.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return reply{}, err
	}
	q := c.query()
	ask := assets.ListQuery{After: q.after(), Limit: q.limit(), IncludeInactive: true}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	return e.assetPage(c, game, ask)
}

func (e *Server) getAsset(c *call) (reply, error) {
	game, asset, err := e.pathAsset(c)
	if err != nil {
		return reply{}, err
	}
	a, err := e.Assets.Get(c.ctx(), c.caller, game, asset)
	return ok(&a), err
}

type assetPatch struct {
	Name         *string             `json:"name"`
	Active       *bool               `json:"active"`
	Price        *wallet.AmountInput `json:"price"`
	Stock        nullable[int64]     `json:"stock,omitzero"`
	PerUserLimit nullable[int64]     `json:"perUserLimit,omitzero"`
	Metadata     jsontext.Value      `json:"metadata"`
}

func (e *Server) patchAsset(c *call, in *assetPatch) (reply, error) {
	game, asset, err := e.pathAsset(c)
	if err != nil {
		return reply{}, err
	}
	a, err := e.Assets.Patch(c.ctx(), c.caller, game, asset, assets.Patch{
		Name: in.Name, Active: in.Active, Price: in.Price, Stock: in.Stock.change(), PerUserLimit: in.PerUserLimit.change(), Metadata: in.Metadata,
	})
	return ok(&a), err
}

func (e *Server) pathAsset(c *call) (game, asset int64, err error) {
	if game, err = e.pathGame(c); err != nil {
		return 0, 0, err
	}
	asset, err = c.pathID("assetId", apierror.AssetNotFound)
	return game, asset, err
}

// Tokens.

func (e *Server) createToken(c *call, in *wallet.TokenDefinition) (reply, error) {
	t, err := e.Wallet.CreateToken(c.ctx(), c.caller, *in)
	return created(&t), err
}

func (e *Server) listTokens(c *call) (reply, error) {
	list, err := e.Wallet.Tokens(c.ctx())
	return ok(pageOf(list, 0)), err
}

func (e *Server) getToken(c *call) (reply, error) {
	t, err := e.Wallet.Token(c.ctx(), c.Param("tokenId"))
	return ok(&t), err
}

type tokenPatch struct {
	Name     *string          `json:"tokenName"`
	LogoURL  nullable[string] `json:"logoUrl,omitzero"`
	Metadata struct {
		AssetName *string `json:"assetName"`
		PolicyID  *string `json:"policyId"`
	} `json:"metadata"`
}

func (e *Server) patchToken(c *call, in *tokenPatch) (reply, error) {
	t, err := e.Wallet.PatchToken(c.ctx(), c.caller, c.Param("tokenId"), wallet.TokenPatch{
		Name: in.Name, LogoURL: in.LogoURL.change(), AssetName: in.Metadata.AssetName, PolicyID: in.Metadata.PolicyID,
	})
	return ok(&t), err
}

// Players.

func (e *Server) getUser(c *call) (reply, error) {
	u, err := e.pathUser(c)
	if err != nil {
		return reply{}, err
	}
	all, err := e.Wallet.Balances(c.ctx(), u.ID)
	return ok(struct {
		User     account          `json:"user"`
		Balances []wallet.Balance `json:"balances"`
	}{accountOf(u), all.Balances}), err
}

type adjustment struct {
	TokenID string             `json:"tokenId"`
	Amount  wallet.AmountInput `json:"amount"`
	Reason  string             `json:"reason"`
}

func (in *adjustment) lacks() needs {
	return needs{}.that(in.TokenID != "", "tokenId").that(in.Amount != "", "amount").that(in.Reason != "", "reason")
}

func (e *Server) credit(c *call, in *adjustment) (reply, error) {
	user, err := c.pathID("userId", apierror.UserNotFound)
	if err != nil {
		return reply{}, err
	}
	change, err := e.Wallet.Credit(c.ctx(), c.caller, wallet.CreditInput{
		UserID: user, TokenID: in.TokenID, Amount: in.Amount, Reason: in.Reason,
	}, c.receipt)
	return ok(&change).again(change.Replayed), err
}

func (e *Server) debit(c *call, in *adjustment) (reply, error) {
	user, err := c.pathID("userId", apierror.UserNotFound)
	if err != nil {
		return reply{}, err
	}
	change, err := e.Wallet.Debit(c.ctx(), c.caller, wallet.DebitInput{
		UserID: user, TokenID: in.TokenID, Amount: in.Amount, Reason: in.Reason,
	}, c.receipt)
	return ok(&change).again(change.Replayed), err
}

// The whole.

func (e *Server) audit(c *call) (reply, error) {
	report, err := e.Wallet.Audit(c.ctx())
	return reply{status: http.StatusOK, body: &report}, err
}
