package games

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// Settings is what a game may choose.
type Settings struct {
	RakeBps      int           // basis points of the pot that a room takes unless it says otherwise
	MinRakeBps   int           // below this no player can go
	MatchTimeout time.Duration // from the start to the result
	IdleTimeout  time.Duration // a room before its start, without a change
	MaxAge       time.Duration // a room before its start
	MaxPlayers   int           // seats that a room may have
	Issuers      []Issuer      // outside identity providers whose tokens sign players in

	ProgressRules json.RawMessage // what saves must keep, a JSON array that package progress reads; nil for none
}

// DefaultSettings is what a game has that chose nothing.
func DefaultSettings() Settings {
	return Settings{MatchTimeout: 2 * time.Hour, IdleTimeout: 15 * time.Minute, MaxAge: 24 * time.Hour, MaxPlayers: 256}
}

// Issuer is an outside identity provider. Its tokens name the game by issuer and audience together, so a
// pair belongs to one game.
type Issuer struct {
	Issuer   string          `json:"issuer"`           // the "iss" claim
	Audience string          `json:"audience"`         // the "aud" claim
	JWKSURL  string          `json:"jwksUrl,omitzero"` // where its key set is, over https
	Keys     json.RawMessage `json:"keys,omitempty"`   // or the key set itself (RFC 7517)
}

// SettingsPatch is Settings on the wire, both in requests, where what is absent stays as it is, and in
// answers, where everything is present.
type SettingsPatch struct {
	RakeBps             *int      `json:"rakeBps,omitempty"`
	MinRakeBps          *int      `json:"minRakeBps,omitempty"`
	MatchTimeoutSeconds *Seconds  `json:"matchTimeoutSeconds,omitempty"`
	IdleTimeoutSeconds  *Seconds  `json:"idleTimeoutSeconds,omitempty"`
	MaxAgeSeconds       *Seconds  `json:"maxAgeSeconds,omitempty"`
	MaxPlayers          *int      `json:"maxPlayers,omitempty"`
	Issuers             *[]Issuer `json:"issuers,omitempty"`

	ProgressRules json.RawMessage `json:"progressRules,omitempty"` // [] for none; null takes them away, too
}

// AsPatch answers the settings as they go over the wire.
func (s Settings) AsPatch() SettingsPatch {
	issuers := s.Issuers
	if issuers == nil {
		issuers = []Issuer{}
	}
	rules := s.ProgressRules
	if rules == nil {
		rules = json.RawMessage("[]")
	}
	return SettingsPatch{
		RakeBps: &s.RakeBps, MinRakeBps: &s.MinRakeBps,
		MatchTimeoutSeconds: new(Seconds(s.MatchTimeout)), IdleTimeoutSeconds: new(Seconds(s.IdleTimeout)), MaxAgeSeconds: new(Seconds(s.MaxAge)),
		MaxPlayers: &s.MaxPlayers, Issuers: &issuers, ProgressRules: rules,
	}
}

// MarshalJSON writes the settings as Wire has them.
func (s Settings) MarshalJSON() ([]byte, error) { return json.Marshal(s.AsPatch()) }

// Seconds is a duration that is a number of seconds in JSON, whole or with a fraction, exact to the nanosecond.
type Seconds time.Duration

var secondsForm = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// MarshalJSON writes 7200 or 0.25.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	if !secondsForm.Match(text) {
		return errors.New("must be a number of seconds")
	}
	d, err := time.ParseDuration(string(text) + "s")
	*s = Seconds(d)
	return err
}

// Bounds of settings.
const (
	wholeBps     = 10_000
	longest      = 30 * 24 * time.Hour
	shortest     = 10 * time.Millisecond
	mostPlayers  = 1_000
	mostIssuers  = 8
	longestClaim = 255
	longestRules = 32 << 10
)

// OwnIssuer is the "iss" claim of Parlor's own tokens; no outside provider can have it.
const OwnIssuer = "parlor"

func (s Settings) apply(c *checked, p SettingsPatch, rules Options) Settings {
	bps := func(field string, to *int, from *int) {
		if from == nil {
			return
		}
		if *from < 0 || *from > wholeBps {
			c.at("settings."+field, "range", "must be 0 to 10000 basis points")
		}
		*to = *from
	}
	bps("rakeBps", &s.RakeBps, p.RakeBps)
	bps("minRakeBps", &s.MinRakeBps, p.MinRakeBps)
	if s.RakeBps < s.MinRakeBps {
		if p.RakeBps != nil {
			c.at("settings.rakeBps", "range", "must not be less than minRakeBps")
		}
		s.RakeBps = s.MinRakeBps // the game's own rake follows a raised minimum
	}
	span := func(field string, to *time.Duration, from *Seconds) {
		if from == nil {
			return
		}
		if d := time.Duration(*from); d < shortest || d > longest {
			c.at("settings."+field, "range", "must be 0.01 seconds to 30 days")
		}
		*to = time.Duration(*from)
	}
	span("matchTimeoutSeconds", &s.MatchTimeout, p.MatchTimeoutSeconds)
	span("idleTimeoutSeconds", &s.IdleTimeout, p.IdleTimeoutSeconds)
	span("maxAgeSeconds", &s.MaxAge, p.MaxAgeSeconds)
	if p.MaxPlayers != nil {
		if *p.MaxPlayers < 1 || *p.MaxPlayers > mostPlayers {
			c.at("settings.maxPlayers", "range", fmt.Sprintf("must be 1 to %d", mostPlayers))
		}
		s.MaxPlayers = *p.MaxPlayers
	}
	if p.Issuers != nil {
		s.Issuers = checkIssuers(c, *p.Issuers, rules)
	}
	if p.ProgressRules != nil {
		if len(p.ProgressRules) > longestRules {
			c.at("settings.progressRules", "range", fmt.Sprintf("must have at most %d bytes", longestRules))
		}
		s.ProgressRules = p.ProgressRules
		if string(p.ProgressRules) == "null" {
			s.ProgressRules = nil
		}
	}
	return s
}

func checkIssuers(c *checked, issuers []Issuer, rules Options) []Issuer {
	if len(issuers) > mostIssuers {
		c.at("settings.issuers", "range", fmt.Sprintf("must be at most %d", mostIssuers))
		return nil
	}
	seen := map[string]bool{}
	for i, issuer := range issuers {
		at := func(member, code, message string) {
			c.at(fmt.Sprintf("settings.issuers[%d].%s", i, member), code, message)
		}
		switch {
		case issuer.Issuer == "" || len(issuer.Issuer) > longestClaim:
			at("issuer", "range", "must have 1 to 255 characters")
		case issuer.Issuer == OwnIssuer:
			at("issuer", "range", "is Parlor's own")
		}
		if issuer.Audience == "" || len(issuer.Audience) > longestClaim {
			at("audience", "range", "must have 1 to 255 characters")
		}
		if seen[issuer.field()] {
			at("audience", "duplicate", "stands here twice with this issuer")
		}
		seen[issuer.field()] = true
		if (issuer.JWKSURL == "") == (len(issuer.Keys) == 0) {
			at("jwksUrl", "required", "must be given, or keys instead, but not both")
			continue
		}
		if issuer.JWKSURL != "" && !fetchable(issuer.JWKSURL, rules) {
			at("jwksUrl", "format", "must be an https address")
		}
		if len(issuer.Keys) > 0 {
			if _, err := ParseKeySet(issuer.Keys); err != nil {
				at("keys", "format", err.Error())
			}
		}
	}
	return issuers
}

// fetchable tells whether a key set may be fetched from an address: https, or in development http on loopback.
func fetchable(address string, rules Options) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(address) > 512 {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && rules.LoopbackIssuers && loopback(u.Hostname())
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
