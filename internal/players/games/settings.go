package games

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Settings has the values that a game may choose.
type Settings struct {
	RakeBps      int           // basis points of the pot, 0 to 10000; a room may choose its own
	MinRakeBps   int           // basis points below which no room may choose its rake
	MaxRakeBps   int           // basis points above which no player may choose the rake of a room
	MatchTimeout time.Duration // from the start of a room to its result
	ReportWindow time.Duration // from the first report in a room with consensus until silence agrees
	IdleTimeout  time.Duration // of a room before its start, since its last change
	MaxAge       time.Duration // of a room before its start, since it was created
	MaxPlayers   int           // largest number of seats of a room
	MinStakeAge  time.Duration // age of an account before it may put a stake into a room
	Issuers      []Issuer      // external identity providers whose tokens sign players in
	AvatarHosts  []string      // hosts of avatars, a name or "*." and a name; none for every public host
	StateKeys    StateKeys     // who may write the shared state of rooms; nil: servers alone
	TurnTimeout  TurnTimeout   // what happens when the time of a turn is over
	Boards       []BoardFeed   // leaderboards that finished rooms feed
	Settlements  []Settlement  // of rooms, which players may choose; at least one
	Quotas       Quotas        // what the game may have in the store
	Feed         bool          // rooms and tournaments feed the game's server

	// GrantLimitPerDay is how much of its token the signup grants may mint in a day (UTC); "" for as
	// much as the limit of the game's servers.
	GrantLimitPerDay DayLimit

	ProgressRules wire.RawJSON // rules for saves, a JSON array that package progress parses; nil for none
}

// DefaultSettings returns the settings of a game that chose none.
func DefaultSettings() Settings {
	return Settings{
		MaxRakeBps: 2_000, MatchTimeout: 2 * time.Hour, IdleTimeout: 15 * time.Minute, MaxAge: 24 * time.Hour,
		MaxPlayers: 256, TurnTimeout: TurnSkips, Settlements: []Settlement{SettledByServer}, Quotas: defaultQuotas(),
		ReportWindow: 2 * time.Minute,
	}
}

// Issuer is an external identity provider. Its tokens name the game by issuer and audience
// together, so a pair of them belongs to one game.
type Issuer struct {
	Issuer     string       `json:"issuer"`           // the "iss" claim
	Audience   string       `json:"audience"`         // the "aud" claim
	JWKSURL    string       `json:"jwksUrl,omitzero"` // https address of the key set, or ""
	KeySetJSON wire.RawJSON `json:"keys,omitzero"`    // the key set itself (RFC 7517), or nil
}

// SettingsPatch is Settings on the wire. In requests an absent member stays as it is; in responses
// all are present.
type SettingsPatch struct {
	RakeBps             *int      `json:"rakeBps,omitzero"`
	MinRakeBps          *int      `json:"minRakeBps,omitzero"`
	MaxRakeBps          *int      `json:"maxRakeBps,omitzero"`
	MatchTimeoutSeconds *Seconds  `json:"matchTimeoutSeconds,omitzero"`
	ReportWindowSeconds *Seconds  `json:"reportWindowSeconds,omitzero"`
	IdleTimeoutSeconds  *Seconds  `json:"idleTimeoutSeconds,omitzero"`
	MaxAgeSeconds       *Seconds  `json:"maxAgeSeconds,omitzero"`
	MaxPlayers          *int      `json:"maxPlayers,omitzero"`
	MinStakeAgeSeconds  *Seconds  `json:"minAgeToStakeSeconds,omitzero"`
	Issuers             *[]Issuer `json:"issuers,omitzero"`
	AvatarHosts         *[]string `json:"avatarHosts,omitzero"`

	StateKeys   *StateKeys   `json:"stateKeys,omitzero"`
	TurnTimeout *TurnTimeout `json:"turnTimeout,omitzero"`
	Boards      *[]BoardFeed `json:"boards,omitzero"`
	Quotas      *QuotasPatch `json:"quotas,omitzero"`

	// GrantLimitPerDay may be null: as much as the game's servers may mint.
	GrantLimitPerDay wire.Nullable[DayLimit] `json:"grantLimitPerDay,omitzero"`

	Settlements *[]Settlement `json:"settlements,omitzero"`
	Feed        *bool         `json:"feed,omitzero"`

	ProgressRules wire.RawJSON `json:"progressRules,omitzero"` // [] and null remove the rules
}

// AsPatch returns the settings as they are on the wire.
func (s Settings) AsPatch() SettingsPatch {
	issuers := s.Issuers
	if issuers == nil {
		issuers = []Issuer{}
	}
	avatarHosts := s.AvatarHosts
	if avatarHosts == nil {
		avatarHosts = []string{}
	}
	stateKeys := s.StateKeys
	if stateKeys == nil {
		stateKeys = StateKeys{}
	}
	boards := s.Boards
	if boards == nil {
		boards = []BoardFeed{}
	}
	rules := s.ProgressRules
	if rules == nil {
		rules = wire.RawJSON("[]")
	}
	return SettingsPatch{
		RakeBps:             &s.RakeBps,
		MinRakeBps:          &s.MinRakeBps,
		MaxRakeBps:          &s.MaxRakeBps,
		MatchTimeoutSeconds: new(Seconds(s.MatchTimeout)),
		ReportWindowSeconds: new(Seconds(s.ReportWindow)),
		IdleTimeoutSeconds:  new(Seconds(s.IdleTimeout)),
		MaxAgeSeconds:       new(Seconds(s.MaxAge)),
		MaxPlayers:          &s.MaxPlayers,
		MinStakeAgeSeconds:  new(Seconds(s.MinStakeAge)),
		Issuers:             &issuers,
		AvatarHosts:         &avatarHosts,
		StateKeys:           &stateKeys,
		TurnTimeout:         &s.TurnTimeout,
		Boards:              &boards,
		Settlements:         &s.Settlements,
		Feed:                &s.Feed,
		Quotas:              s.Quotas.asPatch(),
		GrantLimitPerDay:    wire.Given(&s.GrantLimitPerDay),
		ProgressRules:       rules,
	}
}

// MarshalJSON returns the settings as AsPatch has them.
func (s Settings) MarshalJSON() ([]byte, error) { return wire.Marshal(s.AsPatch()) }

// Seconds is a duration that is a number of seconds in JSON, with an optional fraction, exact to
// the nanosecond.
type Seconds time.Duration

var plainNumberPattern = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// MarshalJSON returns 7200 or 0.25.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (s *Seconds) UnmarshalJSON(raw []byte) error {
	if !plainNumberPattern.Match(raw) {
		return errors.New("must be a number of seconds")
	}
	d, err := time.ParseDuration(string(raw) + "s")
	*s = Seconds(d)
	return err
}

// DayLimit is an amount of a token as decimal text, "" for none: a number or null in JSON, and a
// decimal string in requests, too.
type DayLimit string

// maxDayLimitBytes bounds a DayLimit, as amounts are bounded.
const maxDayLimitBytes = 64

var decimalPattern = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// MarshalJSON returns 1000, 2.5 or null.
func (l DayLimit) MarshalJSON() ([]byte, error) {
	if l == "" {
		return []byte("null"), nil
	}
	return []byte(l), nil
}

// UnmarshalJSON decodes a number or a decimal string.
func (l *DayLimit) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	integer, _, _ := strings.Cut(text, ".")
	if len(text) > maxDayLimitBytes || !decimalPattern.MatchString(text) || len(integer) > 1 && integer[0] == '0' {
		return errors.New("must be an amount: a number or a decimal string")
	}
	*l = DayLimit(text)
	return nil
}

// Bounds of settings.
const (
	maxBps                = 10_000
	minTimeout            = 10 * time.Millisecond
	maxTimeout            = 30 * 24 * time.Hour
	minReportWindow       = 10 * time.Second
	maxReportWindow       = time.Hour
	maxPlayersBound       = 1_000
	maxIssuers            = 8
	maxAvatarHosts        = 32
	maxClaimBytes         = 255
	maxProgressRulesBytes = 32 << 10
	maxURLBytes           = 512
)

// merge returns the settings with the members of a patch that are present.
func (s Settings) merge(p SettingsPatch) Settings {
	wire.Set(&s.RakeBps, p.RakeBps)
	wire.Set(&s.MinRakeBps, p.MinRakeBps)
	wire.Set(&s.MaxRakeBps, p.MaxRakeBps)
	s.RakeBps = max(s.RakeBps, s.MinRakeBps) // the game's own rake follows a raised minimum
	s.MaxRakeBps = max(s.MaxRakeBps, s.MinRakeBps)
	wire.Set(&s.MatchTimeout, (*time.Duration)(p.MatchTimeoutSeconds))
	wire.Set(&s.ReportWindow, (*time.Duration)(p.ReportWindowSeconds))
	wire.Set(&s.IdleTimeout, (*time.Duration)(p.IdleTimeoutSeconds))
	wire.Set(&s.MaxAge, (*time.Duration)(p.MaxAgeSeconds))
	wire.Set(&s.MaxPlayers, p.MaxPlayers)
	wire.Set(&s.MinStakeAge, (*time.Duration)(p.MinStakeAgeSeconds))
	wire.Set(&s.Issuers, p.Issuers)
	wire.Set(&s.AvatarHosts, p.AvatarHosts)
	wire.Set(&s.StateKeys, p.StateKeys)
	wire.Set(&s.TurnTimeout, p.TurnTimeout)
	wire.Set(&s.Boards, p.Boards)
	wire.Set(&s.Settlements, p.Settlements)
	wire.Set(&s.Feed, p.Feed)
	s.Quotas = s.Quotas.merge(p.Quotas)
	if p.GrantLimitPerDay.IsGiven {
		s.GrantLimitPerDay = ""
		wire.Set(&s.GrantLimitPerDay, p.GrantLimitPerDay.Value)
	}
	switch string(p.ProgressRules) {
	case "":
	case "null":
		s.ProgressRules = nil
	default:
		s.ProgressRules = p.ProgressRules
	}
	return s
}

// check adds an error for each faulty field of a patch of the current settings, except the progress
// rules, which Validator checks.
func (p SettingsPatch) check(errs *apierror.FieldErrors, current Settings, o Options) {
	checkBps(errs, "settings.rakeBps", p.RakeBps)
	checkBps(errs, "settings.minRakeBps", p.MinRakeBps)
	checkBps(errs, "settings.maxRakeBps", p.MaxRakeBps)
	if p.RakeBps != nil && *p.RakeBps < current.merge(p).MinRakeBps {
		errs.Add("settings.rakeBps", "range", "must not be less than minRakeBps")
	}
	if p.MaxRakeBps != nil && *p.MaxRakeBps < current.merge(p).MinRakeBps {
		errs.Add("settings.maxRakeBps", "range", "must not be less than minRakeBps")
	}
	checkTimeout(errs, "settings.matchTimeoutSeconds", p.MatchTimeoutSeconds)
	window := p.ReportWindowSeconds
	if window != nil && (time.Duration(*window) < minReportWindow || time.Duration(*window) > maxReportWindow) {
		errs.Add("settings.reportWindowSeconds", "range", "must be 10 seconds to 1 hour")
	}
	checkTimeout(errs, "settings.idleTimeoutSeconds", p.IdleTimeoutSeconds)
	checkTimeout(errs, "settings.maxAgeSeconds", p.MaxAgeSeconds)
	if p.MaxPlayers != nil && (*p.MaxPlayers < 1 || *p.MaxPlayers > maxPlayersBound) {
		errs.Add("settings.maxPlayers", "range", fmt.Sprintf("must be 1 to %d", maxPlayersBound))
	}
	if age := p.MinStakeAgeSeconds; age != nil && time.Duration(*age) > maxTimeout {
		errs.Add("settings.minAgeToStakeSeconds", "range", "must be 0 seconds to 30 days")
	}
	if p.Issuers != nil {
		checkIssuers(errs, *p.Issuers, o)
	}
	if p.AvatarHosts != nil {
		checkAvatarHosts(errs, *p.AvatarHosts)
	}
	if p.StateKeys != nil {
		p.StateKeys.check(errs)
	}
	if t := p.TurnTimeout; t != nil && *t != TurnSkips && *t != TurnForfeits {
		errs.Add("settings.turnTimeout", "unknown", "must be skip or forfeit")
	}
	if p.Boards != nil {
		checkBoardFeeds(errs, *p.Boards)
	}
	if p.Settlements != nil {
		checkSettlements(errs, *p.Settlements)
	}
	p.Quotas.check(errs)
	if len(p.ProgressRules) > maxProgressRulesBytes {
		errs.Add("settings.progressRules", "range", fmt.Sprintf("must have at most %d bytes", maxProgressRulesBytes))
	}
}

// checkServerMayChange adds an error for each member of a patch that only the operator may change:
// a server may change the rules for saves and for the state of rooms, the time-outs of rooms, the
// leaderboards that they feed and whether they feed the server. The settling side of a room decides
// where money goes.
func (p SettingsPatch) checkServerMayChange(errs *apierror.FieldErrors) {
	for _, m := range []struct {
		name  string
		given bool
	}{
		{"rakeBps", p.RakeBps != nil},
		{"minRakeBps", p.MinRakeBps != nil},
		{"maxRakeBps", p.MaxRakeBps != nil},
		{"maxPlayers", p.MaxPlayers != nil},
		{"minAgeToStakeSeconds", p.MinStakeAgeSeconds != nil},
		{"issuers", p.Issuers != nil},
		{"avatarHosts", p.AvatarHosts != nil},
		{"quotas", p.Quotas != nil},
		{"grantLimitPerDay", p.GrantLimitPerDay.IsGiven},
		{"settlements", p.Settlements != nil},
		{"reportWindowSeconds", p.ReportWindowSeconds != nil},
	} {
		if m.given {
			errs.Add("settings."+m.name, "forbidden", "only the operator can change it")
		}
	}
}

func checkBps(errs *apierror.FieldErrors, field string, bps *int) {
	if bps != nil && (*bps < 0 || *bps > maxBps) {
		errs.Add(field, "range", "must be 0 to 10000 basis points")
	}
}

func checkTimeout(errs *apierror.FieldErrors, field string, timeout *Seconds) {
	if timeout != nil && (time.Duration(*timeout) < minTimeout || time.Duration(*timeout) > maxTimeout) {
		errs.Add(field, "range", "must be 0.01 seconds to 30 days")
	}
}

func checkAvatarHosts(errs *apierror.FieldErrors, hosts []string) {
	if len(hosts) > maxAvatarHosts {
		errs.Add("settings.avatarHosts", "range", fmt.Sprintf("must be at most %d", maxAvatarHosts))
		return
	}
	for i, host := range hosts {
		if !text.IsPublicHost(strings.TrimPrefix(host, "*.")) {
			errs.Add(fmt.Sprintf("settings.avatarHosts[%d]", i), "format",
				`must be a public host name in lower case, or "*." and one`)
		}
	}
}

func checkIssuers(errs *apierror.FieldErrors, issuers []Issuer, o Options) {
	if len(issuers) > maxIssuers {
		errs.Add("settings.issuers", "range", fmt.Sprintf("must be at most %d", maxIssuers))
		return
	}
	seen := map[string]bool{}
	for i, issuer := range issuers {
		add := func(member, code, message string) {
			errs.Add(fmt.Sprintf("settings.issuers[%d].%s", i, member), code, message)
		}
		switch {
		case issuer.Issuer == "" || len(issuer.Issuer) > maxClaimBytes:
			add("issuer", "range", "must have 1 to 255 characters")
		case issuer.Issuer == o.ReservedIssuer:
			add("issuer", "range", "is Parlor's own")
		}
		if issuer.Audience == "" || len(issuer.Audience) > maxClaimBytes {
			add("audience", "range", "must have 1 to 255 characters")
		}
		if seen[issuer.indexField()] {
			add("audience", "duplicate", "stands here twice with this issuer")
		}
		seen[issuer.indexField()] = true
		switch {
		case (issuer.JWKSURL == "") == (len(issuer.KeySetJSON) == 0):
			add("jwksUrl", "required", "must be given, or keys instead, but not both")
		case issuer.JWKSURL != "":
			if !isFetchableURL(issuer.JWKSURL, o.AllowLoopbackIssuers) {
				add("jwksUrl", "format", "must be an https address")
			}
		default:
			if err := o.Validator.CheckKeySet(issuer.KeySetJSON); err != nil {
				add("keys", "format", err.Error())
			}
		}
	}
}

// isFetchableURL reports whether a key set may be fetched from an address: https, or in development
// http on loopback.
func isFetchableURL(address string, allowLoopback bool) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(address) > maxURLBytes {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && allowLoopback && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
