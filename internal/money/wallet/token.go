package wallet

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Token is a currency: the EntryToken of the wire. It is defined once for the installation; every
// game has a supply of its own.
type Token struct {
	ID       int64    `json:"id"`        // integer id, from 1
	Code     string   `json:"tokenId"`   // the short code: [A-Za-z0-9_.-]{1,32}
	Name     string   `json:"tokenName"` // at most 64 characters
	LogoURL  *string  `json:"logoUrl"`   // http or https, null when there is no logo
	Metadata Metadata `json:"metadata"`
	Supply   Amount   `json:"volume"` // what exists in a game: all that was minted there and not burnt

	Decimals int         `json:"-"` // fraction digits, 0 … MaxDecimals; they never change
	Games    []TokenGame `json:"-"` // whose server keys may credit and debit it; only the operator sees them
}

// AppendToken appends the JSON of a token, without reflection because every paid room contains one.
// It is not a method, because a type that embeds Token would then be encoded by it.
func AppendToken(b []byte, t Token) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), t.ID, 10)
	b = wire.AppendString(append(b, `,"tokenId":`...), t.Code)
	b = wire.AppendString(append(b, `,"tokenName":`...), t.Name)
	if b = append(b, `,"logoUrl":`...); t.LogoURL == nil {
		b = append(b, "null"...)
	} else {
		b = wire.AppendString(b, *t.LogoURL)
	}
	b = wire.AppendString(append(b, `,"metadata":{"assetName":`...), t.Metadata.AssetName)
	b = wire.AppendString(append(b, `,"policyId":`...), t.Metadata.PolicyID)
	b = wire.AppendString(append(b, `,"decimals":`...), t.Metadata.Decimals)
	b = t.Supply.Units.AppendDecimal(append(b, `},"volume":`...), t.Supply.Decimals)
	return append(b, '}')
}

// Metadata describes the token outside of Parlor.
type Metadata struct {
	AssetName string `json:"assetName"` // at most 128 hexadecimal digits, may be empty
	PolicyID  string `json:"policyId"`  // at most 128 hexadecimal digits, may be empty
	Decimals  string `json:"decimals"`  // fraction digits, 0 … 18, as a string of digits
}

// TokenGame is a game whose server keys may credit and debit a token.
type TokenGame struct {
	GameID   int64
	DayLimit Units // what the server keys may mint in a day, by the store's clock in UTC
}

// TokenGameInput is a TokenGame as a request states it. Both members are required.
type TokenGameInput struct {
	GameID          int64       `json:"gameId"`
	MintLimitPerDay AmountInput `json:"mintLimitPerDay"` // 0 allows debits only
}

// DayLimit returns the units that the server keys of a game may mint in a day. It returns false if
// they may neither credit nor debit the token.
func (t Token) DayLimit(gameID int64) (limit Units, given bool) {
	for _, g := range t.Games {
		if g.GameID == gameID {
			return g.DayLimit, true
		}
	}
	return 0, false
}

// AmountOf returns an amount of this token.
func (t Token) AmountOf(u Units) Amount { return Amount{Units: u, Decimals: t.Decimals} }

// BalanceOf returns the balance of this token in a wallet with these units.
func (t Token) BalanceOf(free, held Units) Balance {
	return Balance{Token: t, Spendable: t.AmountOf(free), SpendableUnits: free, Held: t.AmountOf(held), HeldUnits: held}
}

// TokenDefinition describes a token to create; the fields are bounded as those of Token.
type TokenDefinition struct {
	Code     string   `json:"tokenId"` // the short code
	Name     string   `json:"tokenName"`
	LogoURL  *string  `json:"logoUrl"` // nil: no logo
	Metadata Metadata `json:"metadata"`

	Games []TokenGameInput `json:"games,omitzero"` // nil: none
}

// TokenPatch changes the description of a token; nil leaves a field as it is. Decimals never
// change, since every stored amount counts in them.
type TokenPatch struct {
	Name      *string
	LogoURL   **string // the address of nil removes the logo
	AssetName *string  // hexadecimal
	PolicyID  *string  // hexadecimal
	Games     *[]TokenGameInput
}

const (
	maxCodeBytes   = 32   // bytes
	maxNameRunes   = 64   // characters
	maxURLRunes    = 2048 // characters
	maxHexDigits   = 128  // digits
	maxReasonRunes = 200  // characters
	maxTokenGames  = 256  // games that one token is given to
)

// validator collects the invalid fields of a request.
type validator struct{ apierror.FieldErrors }

// validate returns the decimals of a valid definition.
func (d TokenDefinition) validate() (int, error) {
	var v validator
	switch {
	case d.Code == "":
		v.Add("tokenId", "required", "is required")
	case !isCode(d.Code):
		v.Add("tokenId", "format", "must be 1 to 32 of the characters A-Z a-z 0-9 _ . -")
	}
	v.checkName("tokenName", d.Name)
	v.checkLogo(d.LogoURL)
	v.checkHexadecimal("metadata.assetName", d.Metadata.AssetName)
	v.checkHexadecimal("metadata.policyId", d.Metadata.PolicyID)
	decimals, err := strconv.Atoi(d.Metadata.Decimals)
	switch {
	case d.Metadata.Decimals == "":
		v.Add("metadata.decimals", "required", "is required")
	case err != nil || strconv.Itoa(decimals) != d.Metadata.Decimals || decimals < 0 || decimals > MaxDecimals:
		v.Add("metadata.decimals", "range", "must be a number from 0 to 18, as a string of digits")
	}
	return decimals, v.Err()
}

func (p TokenPatch) validate() error {
	var v validator
	if p.Name != nil {
		v.checkName("tokenName", *p.Name)
	}
	if p.LogoURL != nil {
		v.checkLogo(*p.LogoURL)
	}
	if p.AssetName != nil {
		v.checkHexadecimal("metadata.assetName", *p.AssetName)
	}
	if p.PolicyID != nil {
		v.checkHexadecimal("metadata.policyId", *p.PolicyID)
	}
	return v.Err()
}

// checkGames returns the valid ones of a token's games. lastGame is the id of the newest game.
func (v *validator) checkGames(in []TokenGameInput, decimals int, lastGame int64) []TokenGame {
	if len(in) > maxTokenGames {
		v.Add("games", "range", "must be at most 256")
		return nil
	}
	var games []TokenGame
	for i, g := range in {
		field := "games[" + strconv.Itoa(i) + "]."
		isSame := func(other TokenGame) bool { return other.GameID == g.GameID }
		switch {
		case g.GameID < 1 || g.GameID > lastGame:
			v.Add(field+"gameId", "unknown", "is no game")
		case slices.ContainsFunc(games, isSame):
			v.Add(field+"gameId", "duplicate", "stands here twice")
		}
		units, err := g.MintLimitPerDay.ToUnits(decimals)
		switch {
		case g.MintLimitPerDay == "":
			v.Add(field+"mintLimitPerDay", "required", "is required")
		case err != nil:
			v.Add(field+"mintLimitPerDay", "format", "must be an amount of the token")
		}
		games = append(games, TokenGame{g.GameID, units})
	}
	return games
}

func (v *validator) checkName(field, text string) {
	if strings.TrimSpace(text) == "" {
		v.Add(field, "required", "is required")
	} else if !isLine(text, maxNameRunes) {
		v.Add(field, "length", "must be at most 64 printable characters")
	}
}

func (v *validator) checkLogo(address *string) {
	if address == nil {
		return
	}
	u, err := url.Parse(*address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || !isLine(*address, maxURLRunes) {
		v.Add("logoUrl", "format", "must be an http or https address, or null")
	}
}

func (v *validator) checkHexadecimal(field, text string) {
	if len(text) > maxHexDigits || strings.Trim(text, "0123456789abcdefABCDEF") != "" {
		v.Add(field, "format", "must be at most 128 hexadecimal digits")
	}
}

// CheckReason returns invalid_request unless a text is a valid reason for a staff action: 1 to 200
// printable characters.
func CheckReason(text string) error {
	var v validator
	if strings.TrimSpace(text) == "" {
		v.Add("reason", "required", "is required")
	} else if !isLine(text, maxReasonRunes) {
		v.Add("reason", "length", "must be at most 200 printable characters")
	}
	return v.Err()
}

// isCode reports whether a text can be the code of a token. Other texts need no look-up in the
// store.
func isCode(code string) bool {
	if code == "" || len(code) > maxCodeBytes {
		return false
	}
	for i := range len(code) {
		c := code[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func isNoCode(text string) bool { return !isCode(text) }

// isLine reports whether a text is valid UTF-8 of at most maxRunes characters, none of them a
// control character.
func isLine(text string, maxRunes int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxRunes &&
		!strings.ContainsFunc(text, unicode.IsControl)
}
