package wallet

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/apierror"
)

// Token is a currency of the economy: the EntryToken of the wire.
type Token struct {
	ID       int64    `json:"id"`
	TokenID  string   `json:"tokenId"` // the short code: [A-Za-z0-9_.-]{1,32}
	Name     string   `json:"tokenName"`
	LogoURL  *string  `json:"logoUrl"` // null when there is no logo
	Metadata Metadata `json:"metadata"`
	Supply   Amount   `json:"volume"` // what exists: all that was minted and not burnt

	Decimals int `json:"-"` // fraction digits, 0 … MaxDecimals; they never change
}

// Metadata says what the token is outside of Parlor.
type Metadata struct {
	AssetName string `json:"assetName"` // hexadecimal text, may be empty
	PolicyID  string `json:"policyId"`  // hexadecimal text, may be empty
	Decimals  string `json:"decimals"`  // the fraction digits, as a string of digits
}

// Amount is so many units of this token.
func (t Token) Amount(u Units) Amount { return Amount{Units: u, Decimals: t.Decimals} }

// Balance is the token's entry in a wallet with these units.
func (t Token) Balance(free, held Units) Balance {
	return Balance{Token: t, Volume: t.Amount(free), Amount: free, Held: t.Amount(held), HeldAmount: held}
}

// TokenDefinition is a token to be made.
type TokenDefinition struct {
	TokenID  string   `json:"tokenId"`
	Name     string   `json:"tokenName"`
	LogoURL  *string  `json:"logoUrl"`
	Metadata Metadata `json:"metadata"`
}

// TokenPatch changes what is said of a token; nil leaves a text as it is. Decimals never change: every
// stored amount counts in them.
type TokenPatch struct {
	Name      *string
	LogoURL   **string // the address of nil takes the logo away
	AssetName *string
	PolicyID  *string
}

const (
	longestCode   = 32
	longestName   = 64
	longestURL    = 2048
	longestHex    = 128
	longestReason = 200
)

// faults is what is wrong with a request of this package.
type faults struct{ apierror.FieldErrors }

// validate checks a definition and answers its decimals.
func (d TokenDefinition) validate() (int, error) {
	var f faults
	switch {
	case d.TokenID == "":
		f.Add("tokenId", "required", "is required")
	case !isCode(d.TokenID):
		f.Add("tokenId", "format", "must be 1 to 32 of the characters A-Z a-z 0-9 _ . -")
	}
	f.name("tokenName", d.Name)
	f.logo(d.LogoURL)
	f.hexadecimal("metadata.assetName", d.Metadata.AssetName)
	f.hexadecimal("metadata.policyId", d.Metadata.PolicyID)
	decimals, err := strconv.Atoi(d.Metadata.Decimals)
	switch {
	case d.Metadata.Decimals == "":
		f.Add("metadata.decimals", "required", "is required")
	case err != nil || strconv.Itoa(decimals) != d.Metadata.Decimals || decimals < 0 || decimals > MaxDecimals:
		f.Add("metadata.decimals", "range", "must be a number from 0 to 18, as a string of digits")
	}
	return decimals, f.Err()
}

func (p TokenPatch) validate() error {
	var f faults
	if p.Name != nil {
		f.name("tokenName", *p.Name)
	}
	if p.LogoURL != nil {
		f.logo(*p.LogoURL)
	}
	if p.AssetName != nil {
		f.hexadecimal("metadata.assetName", *p.AssetName)
	}
	if p.PolicyID != nil {
		f.hexadecimal("metadata.policyId", *p.PolicyID)
	}
	return f.Err()
}

func (f *faults) name(field, text string) {
	if strings.TrimSpace(text) == "" {
		f.Add(field, "required", "is required")
	} else if !isLine(text, longestName) {
		f.Add(field, "length", "must be at most 64 printable characters")
	}
}

func (f *faults) logo(address *string) {
	if address == nil {
		return
	}
	u, err := url.Parse(*address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || !isLine(*address, longestURL) {
		f.Add("logoUrl", "format", "must be an http or https address, or null")
	}
}

func (f *faults) hexadecimal(field, text string) {
	if len(text) > longestHex || strings.Trim(text, "0123456789abcdefABCDEF") != "" {
		f.Add(field, "format", "must be at most 128 hexadecimal digits")
	}
}

func (f *faults) reason(text string) {
	if strings.TrimSpace(text) == "" {
		f.Add("reason", "required", "is required")
	} else if !isLine(text, longestReason) {
		f.Add("reason", "length", "must be at most 200 printable characters")
	}
}

// isCode tells whether a text can be the code of a token; anything else is none, without a look at the store.
func isCode(code string) bool {
	if code == "" || len(code) > longestCode {
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

// isLine tells whether a text is valid UTF-8 of at most so many characters without control characters.
func isLine(text string, longest int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= longest && strings.IndexFunc(text, unicode.IsControl) < 0
}
