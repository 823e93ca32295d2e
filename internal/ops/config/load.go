package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Mode is the purpose for which the settings are loaded.
type Mode string

// The modes.
const (
	ModeServe Mode = "serve" // required settings must be set, unknown ones are errors, keys must be strong
	ModeDev   Mode = "dev"   // nothing is required
	ModeTool  Mode = "tool"  // what is set must be valid; the command requires what it needs, see Require
)

// Sources are where values come from.
type Sources struct {
	Flags      map[string]string                         // by name of the setting; only those that were set
	Environ    []string                                  // "NAME=value", as os.Environ; an empty value counts as not set
	ReadFile   func(path string) ([]byte, error)         // reads the settings file and those that PARLOR_…_FILE name
	DecodeFile func(text []byte) (map[string]any, error) // decodes the settings file
	// ExtraChecks holds further checks that need other packages, by name of the setting.
	ExtraChecks map[string]func(value string) error
}

// SettingError is one setting that is wrong.
type SettingError struct {
	Setting string // "PARLOR_ROOM_SHARDS (environment)"
	Problem string // what is wrong, and how to correct it
}

// SettingErrors are all settings that are wrong, as one error with a line for each.
type SettingErrors []SettingError

// ExitStatus is that of a process with wrong settings: EX_CONFIG of sysexits.h.
const ExitStatus = 78

func (e SettingErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Setting + ": " + one.Problem
	}
	return strings.Join(lines, "\n")
}

// Load reads, converts and checks all settings. Its error is of type SettingErrors. Even then the
// settings are complete, with defaults in place of wrong values, so that they can be shown.
func Load(mode Mode, from Sources) (Settings, error) {
	l := loader{mode: mode, from: from, env: map[string]string{}}
	for _, pair := range from.Environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, envPrefix) && value != "" {
			l.env[name] = value
		}
	}
	l.settings.origins, l.settings.texts = map[string]Origin{}, map[string]string{}
	l.readFile()
	for _, f := range settings {
		l.load(f)
	}
	l.checkUnknown()
	l.checkCombinations()
	if len(l.errors) > 0 {
		return l.settings, l.errors
	}
	return l.settings, nil
}

// Require returns err with an error added for each of the named settings that has no value.
func (s *Settings) Require(err error, names ...string) error {
	var errs SettingErrors
	errors.As(err, &errs)
	for _, name := range names {
		f := settingsByName[name]
		if f.valueIn(s).IsZero() && s.origins[name] == FromDefault { // a wrong value is in err already
			other := "--" + f.name
			if f.secret && name != "redis-url" {
				other = f.env + "_FILE"
			}
			errs = append(errs, SettingError{f.env, "is not set; set it, or " + other})
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs
}

type loader struct {
	mode       Mode
	from       Sources
	env        map[string]string // variables with the prefix, by name
	fileValues map[string]any    // the decoded settings file
	fileOrigin Origin
	settings   Settings
	errors     SettingErrors
}

func (l *loader) addError(setting, format string, args ...any) {
	l.errors = append(l.errors, SettingError{setting, fmt.Sprintf(format, args...)})
}

func (l *loader) addWarning(format string, args ...any) {
	l.settings.warnings = append(l.settings.warnings, fmt.Sprintf(format, args...))
}

// readFile finds the settings file by flag or environment and decodes it.
func (l *loader) readFile() {
	path := cmp.Or(l.from.Flags["config"], l.env[envPrefix+"CONFIG"])
	if path == "" {
		return
	}
	l.fileOrigin = Origin(path)
	text, err := l.from.ReadFile(path)
	if err == nil {
		l.fileValues, err = l.from.DecodeFile(text)
	}
	if err != nil {
		l.addError(envPrefix+"CONFIG", "the settings file cannot be read: %v", err)
	}
}

// load sets one setting to the value of its strongest source, or to its default when that is wrong.
func (l *loader) load(f setting) {
	byDefault := f.defaultFor(l.mode)
	text, origin, err := l.lookup(f)
	l.settings.origins[f.name] = cmp.Or(origin, FromDefault)
	if origin == "" {
		l.setDefault(f, byDefault)
		return
	}
	if err == nil && origin == FromFlag {
		err = f.checkFlag(text)
	}
	if err == nil {
		if err = f.parseInto(&l.settings, text); err != nil && !f.secret {
			err = fmt.Errorf("%q %w", text, err)
		}
	}
	if check := l.from.ExtraChecks[f.name]; err == nil && check != nil {
		err = check(text)
	}
	if err == nil {
		err = f.checkKeys(&l.settings, l.mode)
	}
	if err != nil {
		l.addError(f.label(origin), "%v", err)
		l.setDefault(f, byDefault)
		return
	}
	l.settings.texts[f.name] = text
	if f.secret && text != "" {
		l.settings.texts[f.name] = redactedText
	}
}

func (l *loader) setDefault(f setting, text string) {
	if err := f.parseInto(&l.settings, text); err != nil {
		panic("config: the default of " + f.name + " " + err.Error()) // a test loads them all
	}
	l.settings.texts[f.name] = text
}

// lookup returns the text and origin of a setting from its strongest source, "" when none has it.
func (l *loader) lookup(f setting) (text string, origin Origin, err error) {
	path := ""
	if f.secret {
		path = l.env[f.env+"_FILE"]
	}
	if path != "" && l.env[f.env] != "" {
		l.addError(f.env, "and %s_FILE are both set; unset one of them", f.env)
	}
	if text, ok := l.from.Flags[f.name]; ok {
		return text, FromFlag, nil
	}
	if text := l.env[f.env]; text != "" {
		return text, FromEnvironment, nil
	}
	if path != "" {
		content, err := l.from.ReadFile(path)
		if err != nil {
			err = fmt.Errorf("cannot be read: %w", err)
		}
		return strings.TrimRight(string(content), "\r\n"), Origin(path), err
	}
	if value, ok := l.fileValues[f.name]; ok && f.name != "config" && value != nil {
		text, err := textOf(value)
		return text, l.fileOrigin, err
	}
	return "", "", nil
}

// textOf returns a value of the settings file as the environment would spell it.
func textOf(value any) (string, error) {
	switch v := value.(type) {
	case string, bool, int, int64, uint64:
		return fmt.Sprint(v), nil
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			if _, nested := item.([]any); nested {
				return "", errors.New("is a list of lists; set a plain list")
			}
			var err error
			if items[i], err = textOf(item); err != nil {
				return "", err
			}
		}
		return strings.Join(items, ","), nil
	default:
		return "", errors.New("must be text, a whole number, true or false, or a list of these")
	}
}

// checkUnknown adds an error for each name that is not a setting: in the file always, in the
// environment for Serve.
func (l *loader) checkUnknown() {
	for _, name := range slices.Sorted(maps.Keys(l.fileValues)) {
		if _, ok := settingsByName[name]; !ok || name == "config" {
			l.addError(fmt.Sprintf("%s (%s)", name, l.fileOrigin), "is not a setting; correct or remove it")
		}
	}
	if l.mode != ModeServe {
		return
	}
	known := map[string]bool{}
	for _, f := range settings {
		known[f.env] = true
		known[f.env+"_FILE"] = f.secret
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		if !known[name] {
			l.addError(name+" (environment)", "is not a setting; correct or unset it")
		}
	}
}

// checkCombinations checks what concerns several settings, or the mode.
func (l *loader) checkCombinations() {
	if l.mode == ModeServe {
		l.checkServe()
	}
	l.checkDurability()
	l.checkStateDir()
	if text := l.settings.AdvertiseAddress; text != "" {
		if host, port, err := net.SplitHostPort(text); err != nil || host == "" || port == "" {
			l.addError(settingsByName["advertise"].label(l.settings.origins["advertise"]), "is not host:port, as 10.0.0.7:8080")
		}
	}
	if s := &l.settings; s.ListenAddress == s.InternalListenAddress && !strings.HasSuffix(s.ListenAddress, ":0") {
		l.addError(envPrefix+"INTERNAL_LISTEN", "is the public address too; set another port")
	}
	if s := &l.settings; s.ReadyListenAddress != "" && !strings.HasSuffix(s.ReadyListenAddress, ":0") &&
		(s.ReadyListenAddress == s.ListenAddress || s.ReadyListenAddress == s.InternalListenAddress) {
		l.addError(envPrefix+"READY_LISTEN", "is another address of the node too; set another port")
	}
}

func (l *loader) checkServe() {
	s := &l.settings
	if err := s.Require(l.errors, "redis-url", "admin-key", "signing-key"); err != nil {
		l.errors = err.(SettingErrors)
	}
	if slices.ContainsFunc(s.AdminKeys, func(key Secret) bool { return slices.Contains(s.SigningKeys, key) }) {
		l.addError(envPrefix+"ADMIN_KEY", "is also a signing key: whoever has one would be both; use two different keys")
	}
	if slices.ContainsFunc(s.AdminKeys, func(key Secret) bool { return slices.Contains(s.SaveKeys, key) }) {
		l.addError(envPrefix+"ADMIN_KEY", "is also a save key: whoever has one would be both; use two different keys")
	}
	if skipsVerification(s.RedisURL.Reveal()) {
		l.addError(envPrefix+"REDIS_URL", "skip_verify accepts any server as the store; "+
			"name the certificate of your authority by ?ca=/path instead")
	}
	for _, problem := range untrustworthy(s.TrustedProxies) {
		l.addError(envPrefix+"TRUSTED_PROXIES", "%s; set the networks of your own proxies", problem)
	}
}

// skipsVerification reports whether the URL of a store turns the check of its certificate off.
func skipsVerification(storeURL string) bool {
	_, query, _ := strings.Cut(storeURL, "?")
	values, _ := url.ParseQuery(query) // what cannot be parsed is an error elsewhere
	for _, value := range values["skip_verify"] {
		if skip, err := strconv.ParseBool(value); skip || err != nil {
			return true
		}
	}
	return false
}

// The widest networks that can be one's own: 10.0.0.0/8, and for IPv6 what a registry gives to a
// provider. Unique local addresses (RFC 4193) may be trusted as a whole.
const (
	minProxyBitsIPv4 = 8
	minProxyBitsIPv6 = 16
	maxProxyIPv4     = 1 << 31 // addresses of all networks together: half of all that there are
)

var uniqueLocal = netip.MustParsePrefix("fc00::/7")

// untrustworthy returns why a list of trusted proxies is too wide: every address in it can choose
// the client address that counts.
func untrustworthy(networks []netip.Prefix) (problems []string) {
	sum := uint64(0)
	for i, network := range networks {
		address, bits := network.Addr(), network.Bits()
		switch {
		case address.Is4() && bits < minProxyBitsIPv4,
			address.Is6() && bits < minProxyBitsIPv6 && (!uniqueLocal.Contains(address) || bits < uniqueLocal.Bits()):
			problems = append(problems, network.String()+" trusts a large part of the internet")
		case address.Is4() && !slices.Contains(networks[:i], network):
			sum += 1 << (address.BitLen() - bits)
		}
	}
	if sum >= maxProxyIPv4 {
		problems = append(problems, "the networks together trust a large part of the internet")
	}
	return problems
}

func (l *loader) checkDurability() {
	s := &l.settings
	if s.Archive == "" && l.mode == ModeServe {
		l.addWarning(envPrefix + "ARCHIVE is not set: the ledger never leaves the store, which is full some day; " +
			"set it to file:///folder or s3://bucket/prefix")
	}
	label := settingsByName["durability"].label(s.origins["durability"])
	switch {
	case s.Durability == "replica" && l.mode == ModeDev && s.RedisURL == "":
		l.addError(label, "the embedded store has no replica; use memory, or set %sREDIS_URL", envPrefix)
	case s.Durability == "memory" && l.mode == ModeServe:
		l.addWarning(envPrefix + "DURABILITY memory loses acknowledged money when Redis restarts; use disk for real money")
	case s.Durability == "disk" && l.mode == ModeDev && s.RedisURL == "":
		l.addError(label, "the embedded store writes nothing to disk; use memory, or set %sREDIS_URL", envPrefix)
	}
}

// checkStateDir warns of a node that does not notice by itself at its start that the store lost
// something.
func (l *loader) checkStateDir() {
	if l.mode == ModeServe && l.settings.StateDir == "" {
		l.addWarning(envPrefix + "STATE_DIR is not set: after a restart this node does not notice that the store " +
			"was emptied, restored from a backup or replaced; give it a folder of its own")
	}
}
