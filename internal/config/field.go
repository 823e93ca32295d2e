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

// field is one setting, read from the tags of Settings.
type field struct {
	name, env, doc string
	serve, dev     string // defaults
	oneof          []string
	min, max       int64
	secret         bool
	duration       bool
	index          int
}

const prefix = "PARLOR_"

var (
	fields []field
	byName = map[string]field{}
)

func init() {
	t := reflect.TypeFor[Settings]()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name := tag.Get("name")
		if name == "" {
			continue
		}
		f := field{
			name: name, env: prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")), doc: tag.Get("doc"),
			serve: tag.Get("default"), dev: tag.Get("default"), index: i,
			secret: t.Field(i).Type == reflect.TypeFor[Secret]() || t.Field(i).Type == reflect.TypeFor[[]Secret](),
		}
		if dev, ok := tag.Lookup("dev"); ok {
			f.dev = dev
		}
		if words := tag.Get("oneof"); words != "" {
			f.oneof = strings.Fields(words)
		}
		f.duration = t.Field(i).Type == reflect.TypeFor[time.Duration]()
		f.min, f.max = bound(tag.Get("min")), bound(tag.Get("max"))
		fields = append(fields, f)
		byName[name] = f
	}
}

// bound reads the tag min or max: a whole number or a duration, 0 where there is none.
func bound(text string) int64 {
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (f field) byDefault(mode Mode) string {
	if mode == Dev {
		return f.dev
	}
	return f.serve
}

func (f field) of(s *Settings) reflect.Value { return reflect.ValueOf(s).Elem().Field(f.index) }

// at names a setting by the source that set it: what to look for when it is wrong.
func (f field) at(origin Origin) string {
	if origin == FromFlag {
		return "--" + f.name + " (flag)"
	}
	return fmt.Sprintf("%s (%s)", f.env, origin)
}

// parse converts text and stores it in the field of s, or tells what it must look like.
func (f field) parse(s *Settings, text string) error {
	if f.oneof != nil && !slices.Contains(f.oneof, text) {
		return fmt.Errorf("is not one of: %s", strings.Join(f.oneof, ", "))
	}
	switch to := f.of(s).Addr().Interface().(type) {
	case *string:
		if strings.HasSuffix(f.name, "listen") {
			_, port, err := net.SplitHostPort(text)
			if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
				return errors.New("is not host:port; set something like 127.0.0.1:8080")
			}
		}
		*to = text
	case *bool:
		switch text {
		case "on", "true":
			*to = true
		case "off", "false":
			*to = false
		default:
			return errors.New("is neither on nor off")
		}
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || int64(n) < f.min || int64(n) > f.max {
			return fmt.Errorf("is not a number from %d to %d", f.min, f.max)
		}
		*to = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || int64(d) < f.min || int64(d) > f.max {
			return fmt.Errorf("is not a duration from %s to %s; write it like 90s, 15m or 24h", short(time.Duration(f.min)), short(time.Duration(f.max)))
		}
		*to = d
	case *slog.Level:
		levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
		level, ok := levels[text]
		if !ok {
			return errors.New("is not one of: debug, info, warn, error")
		}
		*to = level
	case *[]netip.Prefix:
		var list []netip.Prefix
		for _, item := range items(text) {
			p, err := netip.ParsePrefix(item)
			if err != nil {
				var a netip.Addr
				if a, err = netip.ParseAddr(item); err != nil {
					return errors.New("is not a list of networks; write it like 10.0.0.0/8,192.168.1.7")
				}
				p = netip.PrefixFrom(a, a.BitLen())
			}
			list = append(list, p.Masked())
		}
		*to = list
	case *Secret:
		if f.name == "redis-url" && text != "" && !slices.ContainsFunc(strings.Fields(redisSchemes), func(scheme string) bool { return strings.HasPrefix(text, scheme) }) {
			return errors.New("must start with one of: " + redisSchemes)
		}
		*to = Secret(text)
	case *[]Secret:
		var list []Secret
		for _, item := range items(text) {
			list = append(list, Secret(item))
		}
		*to = list
	default:
		panic("config: " + f.name + " has a type that cannot be parsed")
	}
	return nil
}

func items(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

const (
	minKeyBytes    = 32
	minKeyDistinct = 8
)

// DevKeyPrefix starts every key that "parlor dev" makes, which shows them on a screen; serve refuses such a key.
const DevKeyPrefix = "dev-"

// guarded are the keys that this setting holds, if it holds any.
func (f field) guarded(s *Settings) []Secret {
	switch f.name {
	case "admin-key":
		return []Secret{s.AdminKey}
	case "signing-key":
		return s.SigningKey
	}
	return nil
}

// weak tells why a key is not fit: to guard a real installation, or to sign anything at all.
func (f field) weak(s *Settings, mode Mode) error {
	for _, key := range f.guarded(s) {
		text := key.Reveal()
		switch {
		case mode != Serve && f.name == "admin-key":
		case len(text) < minKeyBytes:
			return fmt.Errorf("has %d bytes and needs at least %d; make one with: openssl rand -hex 32", len(text), minKeyBytes)
		case mode == Serve && strings.HasPrefix(text, DevKeyPrefix):
			return errors.New("was made by parlor dev, which shows its keys; make one with: openssl rand -hex 32")
		}
	}
	return nil
}

// examples are what keys look like that were copied from somewhere instead of made.
var examples = []string{"changeme", "change-me", "change_me", "password", "placeholder", "example"}

// guessable tells whether a key that is long enough looks as if nobody drew it by chance.
func (s Secret) guessable() bool {
	text := strings.ToLower(s.Reveal())
	distinct := map[byte]bool{}
	for i := range len(text) {
		distinct[text[i]] = true
	}
	return len(distinct) < minKeyDistinct || slices.ContainsFunc(examples, func(word string) bool { return strings.Contains(text, word) })
}
