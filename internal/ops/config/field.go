package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one setting, as the tags of Settings declare it.
type setting struct {
	name, env, doc           string
	serveDefault, devDefault string   // defaults, as the environment would spell them
	allowedValues            []string // the only values; nil: no such limit
	min, max                 string   // bounds, as the environment would spell them; max "": none
	secret                   bool
	reload                   bool // a node that runs takes a new value
	structIndex              int  // in Settings
}

const envPrefix = "PARLOR_"

var (
	settings       []setting
	settingsByName = map[string]setting{}
)

func init() {
	t := reflect.TypeFor[Settings]()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name := tag.Get("name")
		if name == "" {
			continue
		}
		f := setting{
			name: name, env: envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")), doc: docs[name],
			serveDefault: tag.Get("default"), devDefault: tag.Get("default"), min: tag.Get("min"),
			max: tag.Get("max"), structIndex: i,
			secret: t.Field(i).Type == reflect.TypeFor[Secret]() || t.Field(i).Type == reflect.TypeFor[[]Secret](),
		}
		if f.reload = tag.Get("hup") == "1"; f.reload {
			f.doc += " SIGHUP reads it again."
		}
		if dev, ok := tag.Lookup("dev"); ok {
			f.devDefault = dev
		}
		if values := tag.Get("oneof"); values != "" {
			f.allowedValues = strings.Fields(values)
		}
		settings = append(settings, f)
		settingsByName[name] = f
	}
}

func (f setting) defaultFor(mode Mode) string {
	if mode == ModeDev {
		return f.devDefault
	}
	return f.serveDefault
}

func (f setting) valueIn(s *Settings) reflect.Value {
	return reflect.ValueOf(s).Elem().Field(f.structIndex)
}

// label returns the name under which the origin set the setting, for error messages.
func (f setting) label(origin Origin) string {
	if origin == FromFlag {
		return "--" + f.name + " (flag)"
	}
	return fmt.Sprintf("%s (%s)", f.env, origin)
}

// parseInto converts text and stores it in the field of s. Its error describes the correct form.
func (f setting) parseInto(s *Settings, text string) (err error) {
	if f.allowedValues != nil && !slices.Contains(f.allowedValues, text) {
		return fmt.Errorf("is not one of: %s", strings.Join(f.allowedValues, ", "))
	}
	switch to := f.valueIn(s).Addr().Interface().(type) {
	case *string:
		*to, err = f.checkString(text)
	case *bool:
		*to, err = parseSwitch(text)
	case *int:
		*to, err = f.parseInt(text)
	case *time.Duration:
		*to, err = f.parseDuration(text)
	case *slog.Level:
		err = to.UnmarshalText([]byte(text))
	case *[]netip.Prefix:
		*to, err = parseNetworks(text)
	case *Secret:
		*to, err = f.parseSecret(text)
	case *[]Secret:
		*to = nil
		for _, item := range splitList(text) {
			*to = append(*to, Secret(item))
		}
	default:
		panic("config: " + f.name + " has a type that cannot be parsed")
	}
	return err
}

// checkString accepts any text, but host:port for the listening addresses. One without a default
// may be empty.
func (f setting) checkString(text string) (string, error) {
	if strings.HasSuffix(f.name, "listen") && (text != "" || f.serveDefault != "") {
		_, port, err := net.SplitHostPort(text)
		if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
			return "", errors.New("is not host:port; set something like 127.0.0.1:8080")
		}
	}
	return text, nil
}

func parseSwitch(text string) (bool, error) {
	switch text {
	case "on", "true":
		return true, nil
	case "off", "false":
		return false, nil
	}
	return false, errors.New("is neither on nor off")
}

func (f setting) parseInt(text string) (int, error) {
	least, _ := strconv.Atoi(f.min)
	most, _ := strconv.Atoi(f.max)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("is not a number from %s to %s", f.min, f.max)
	}
	return n, nil
}

func (f setting) parseDuration(text string) (time.Duration, error) {
	least, _ := time.ParseDuration(f.min)
	most, _ := time.ParseDuration(f.max)
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("is not a duration from %s to %s; write it like 90s, 15m or 24h", f.min, f.max)
	}
	return d, nil
}

// parseNetworks parses a list of networks. An address alone is the network of that address.
func parseNetworks(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, item := range splitList(text) {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			var address netip.Addr
			if address, err = netip.ParseAddr(item); err != nil {
				return nil, errors.New("is not a list of networks; write it like 10.0.0.0/8,192.168.1.7")
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if address := network.Addr(); address.Is4In6() && network.Bits() >= ipv4InIPv6Bits {
			network = netip.PrefixFrom(address.Unmap(), network.Bits()-ipv4InIPv6Bits)
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

// ipv4InIPv6Bits is the length of the prefix before an IPv4 address that is written as IPv6.
const ipv4InIPv6Bits = 96

const redisSchemes = "redis:// rediss:// unix:// redis-cluster:// rediss-cluster:// redis-sentinel:// " +
	"rediss-sentinel://"

// parseSecret accepts any text, but a URL of Redis for the store.
func (f setting) parseSecret(text string) (Secret, error) {
	known := func(scheme string) bool { return strings.HasPrefix(text, scheme) }
	if f.name == "redis-url" && text != "" && !slices.ContainsFunc(strings.Fields(redisSchemes), known) {
		return "", errors.New("must start with one of: " + redisSchemes)
	}
	return Secret(text), nil
}

// splitList returns the items of a comma-separated list, without empty ones.
func splitList(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// checkFlag returns an error when a flag has a secret: every process of the machine can read it.
func (f setting) checkFlag(text string) error {
	if !f.secret || f.name == "redis-url" && !hasPassword(text) {
		return nil
	}
	return fmt.Errorf("a secret must not be a flag, which every process of this machine can read; set %s, or %s_FILE",
		f.env, f.env)
}

// hasPassword reports whether the URL of a store has a password.
func hasPassword(storeURL string) bool {
	_, rest, _ := strings.Cut(storeURL, "://")
	rest, query, _ := strings.Cut(rest, "?")
	user, _, hasUser := cutLast(rest, "@")
	return hasUser && strings.Contains(user, ":") || strings.Contains(strings.ToLower(query), "password")
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

const (
	minKeyBytes         = 32
	minKeyDistinctBytes = 8 // different bytes
	minKeyRepetitions   = 3 // of one text: a key that is nothing else is not random
)

// DevKeyPrefix starts every key that "parlor dev" generates and prints. serve rejects such a key.
const DevKeyPrefix = "dev-"

// serverKeyParts is the number of parts of a server key: "psk", the game and what is random.
const serverKeyParts = 3

// keysIn returns what must be random of the keys that this setting holds, nil for other settings.
func (f setting) keysIn(s *Settings) []Secret {
	switch f.name {
	case "admin-key":
		return s.AdminKeys
	case "signing-key":
		return s.SigningKeys
	case "save-key":
		return s.SaveKeys
	case "first-game-key":
		if parts := strings.SplitN(s.FirstGameKey.Reveal(), "_", serverKeyParts); len(parts) == serverKeyParts {
			return []Secret{Secret(parts[serverKeyParts-1])}
		}
	}
	return nil
}

const makeKey = "make one with: openssl rand -hex 32"

// checkKeys returns an error when a key is too short, can be guessed, or was printed by
// "parlor dev".
func (f setting) checkKeys(s *Settings, mode Mode) error {
	for _, key := range f.keysIn(s) {
		text := key.Reveal()
		switch {
		case mode != ModeServe && f.name == "admin-key":
		case len(text) < minKeyBytes:
			return fmt.Errorf("has %d bytes and needs at least %d; %s", len(text), minKeyBytes, makeKey)
		case mode != ModeServe:
		case strings.HasPrefix(text, DevKeyPrefix):
			return errors.New("was made by parlor dev, which prints its keys; " + makeKey)
		default:
			if problem := key.weakness(); problem != "" {
				return errors.New("can be guessed: it " + problem + "; " + makeKey)
			}
		}
	}
	return nil
}

// keyPlaceholders are parts of keys that were copied from documentation instead of generated.
var keyPlaceholders = []string{"changeme", "change-me", "change_me", "password", "placeholder", "example"}

// weakness returns why a key of sufficient length is not random, or "" when nothing is known
// against it. It does not quote the key.
func (s Secret) weakness() string {
	text := strings.ToLower(s.Reveal())
	distinct := map[byte]bool{}
	for i := range len(text) {
		distinct[text[i]] = true
	}
	switch {
	case slices.ContainsFunc(keyPlaceholders, func(p string) bool { return strings.Contains(text, p) }):
		return "has a word that stands for a key in documentation"
	case len(distinct) < minKeyDistinctBytes:
		return fmt.Sprintf("has only %d different characters", len(distinct))
	}
	for period := 1; period <= len(text)/minKeyRepetitions; period++ {
		if text[period:] == text[:len(text)-period] {
			return fmt.Sprintf("repeats %d characters again and again", period)
		}
	}
	return ""
}
