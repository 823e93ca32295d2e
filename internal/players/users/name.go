package users

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
)

// Bounds of a profile.
const (
	MaxUsernameRunes = 32  // characters (runes)
	MaxAvatarBytes   = 512 // bytes
)

// CheckUsername returns a username without the white space around it. It returns invalid_request
// for a name that is empty or too long, has control or invisible characters, or has no visible
// character.
func CheckUsername(name string) (string, error) {
	name, err := text.CheckLine("username", name, MaxUsernameRunes)
	switch {
	case err != nil:
		return "", err
	case hasHiddenCharacter([]rune(name)):
		return "", apierror.InvalidRequest.WithField("username", "format", "must be text without invisible characters")
	case !strings.ContainsFunc(name, unicode.IsGraphic):
		return "", apierror.InvalidRequest.WithField("username", "format", "must have a visible character")
	}
	return name, nil
}

// CheckChosenUsername is CheckUsername for a name that a player chooses, not the game's server. It
// also returns invalid_request for a name that looks like one of staff, and for one that is drawn
// over the lines around it.
func CheckChosenUsername(name string) (string, error) {
	name, err := CheckUsername(name)
	switch {
	case err != nil:
		return "", err
	case isReserved(name):
		return "", apierror.InvalidRequest.WithField("username", "reserved", "must not look like a name of staff")
	case text.LongestMarks(name) > maxMarks:
		return "", apierror.InvalidRequest.WithField("username", "format",
			"must have at most "+strconv.Itoa(maxMarks)+" marks on a letter")
	}
	return name, nil
}

// maxMarks bounds the marks of one letter: Tibetan and Hebrew need three.
const maxMarks = 4

// reservedNames are names that players take for staff, in the form that Skeleton returns. A name
// matches only as a whole, after characters that are not letters are removed from its start and
// end.
var reservedNames = skeletons(
	"admin", "administrator", "moderator", "operator", "staff", "support", "system", "parlor",
)

func skeletons(names ...string) map[string]bool {
	list := make(map[string]bool, len(names))
	for _, name := range names {
		list[text.Skeleton(name)] = true
	}
	return list
}

func isReserved(name string) bool {
	letters := strings.TrimFunc(name, func(r rune) bool { return !unicode.In(r, unicode.Letter, unicode.So) })
	return reservedNames[text.Skeleton(name)] || reservedNames[text.Skeleton(letters)]
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	brailleBlank       = '\u2800'
	emojiPresentation  = '\ufe0f'
	textPresentation   = '\ufe0e'
)

// joiningScripts are the scripts in which the zero-width joiners change how a word looks (UAX #31,
// 2.3).
var joiningScripts = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
	unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese,
}

// hasHiddenCharacter reports whether a name has a character that nobody sees, so that two names
// look alike, or that breaks or reorders a line. A joiner is allowed where it is seen: within a
// word of joiningScripts, and between the parts of one emoji.
func hasHiddenCharacter(name []rune) bool {
	at := func(i int) rune {
		if i < 0 || i >= len(name) {
			return 0
		}
		return name[i]
	}
	for i, r := range name {
		before, after := at(i-1), at(i+1)
		switch r {
		case ' ':
		case zeroWidthJoiner, zeroWidthNonJoiner:
			inWord := unicode.In(before, joiningScripts...) && unicode.In(after, joiningScripts...) && unicode.IsLetter(after)
			inEmoji := r == zeroWidthJoiner && (unicode.IsSymbol(before) || before == emojiPresentation) &&
				unicode.IsSymbol(after)
			if !inWord && !inEmoji {
				return true
			}
		case emojiPresentation, textPresentation:
			if !unicode.IsSymbol(before) {
				return true
			}
		case brailleBlank:
			return true
		default:
			if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs,
				unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
				return true
			}
		}
	}
	return false
}

// CheckAvatar returns invalid_request unless the avatar is the address of a picture at a public
// host, and one of hosts where there are any: a name, or "*.name" for all names below it. nil is no
// avatar. Everybody who sees the player fetches the picture, so the host learns their addresses.
func CheckAvatar(avatar *string, hosts []string) error {
	if avatar == nil {
		return nil
	}
	u, err := url.Parse(*avatar)
	switch {
	case len(*avatar) > MaxAvatarBytes:
		return apierror.InvalidRequest.WithField("avatar", "range", "must have at most 512 bytes")
	case err != nil || !utf8.ValidString(*avatar) || u.Scheme != "https" || u.User != nil ||
		u.Port() != "" && u.Port() != "443" || !text.IsPublicHost(strings.ToLower(u.Hostname())):
		return apierror.InvalidRequest.WithField("avatar", "format", "must be an https address at a public host name")
	case len(hosts) > 0 && !allowsHost(hosts, strings.ToLower(u.Hostname())):
		return apierror.InvalidRequest.WithField("avatar", "forbidden", "must be at a host that the game lists")
	}
	return nil
}

func allowsHost(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(pattern string) bool {
		suffix, isWildcard := strings.CutPrefix(pattern, "*")
		return pattern == host || isWildcard && strings.HasSuffix(host, suffix)
	})
}
