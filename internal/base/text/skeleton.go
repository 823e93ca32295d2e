package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lookAlikes are letters and digits that look like a Latin one which is in a word that names staff.
// Compatibility variants such as Ⓐ and Ａ are not here: normalization maps them.
var lookAlikes = map[rune]rune{
	'а': 'a', 'ɑ': 'a', 'α': 'a', 'ᴀ': 'a', '4': 'a', '@': 'a', // Cyrillic, Latin, Greek, small capital
	'ԁ': 'd', 'ɗ': 'd', 'ᴅ': 'd', 'đ': 'd',
	'е': 'e', 'ε': 'e', 'є': 'e', 'ᴇ': 'e', '3': 'e',
	'ғ': 'f', 'ϝ': 'f', 'ꜰ': 'f',
	'і': 'i', 'ι': 'i', 'ı': 'i', 'ɪ': 'i', 'ӏ': 'i', 'l': 'i', 'ʟ': 'i', '1': 'i', '|': 'i', '!': 'i',
	'м': 'm', 'μ': 'm', 'ᴍ': 'm',
	'Ν': 'n', 'п': 'n', 'η': 'n', 'ո': 'n', 'ɴ': 'n',
	'о': 'o', 'ο': 'o', 'օ': 'o', 'ø': 'o', 'ᴏ': 'o', '0': 'o',
	'р': 'p', 'ρ': 'p', 'ᴘ': 'p',
	'г': 'r', 'ʀ': 'r',
	'ѕ': 's', 'ꜱ': 's', '5': 's', '$': 's',
	'т': 't', 'τ': 't', 'ᴛ': 't', '7': 't',
	'υ': 'u', 'ᴜ': 'u', 'ս': 'u',
	'у': 'y', 'γ': 'y', 'ʏ': 'y',
}

// Skeleton returns the Latin letters that a line looks like, in lower case. Lines that look alike
// have the same skeleton. It replaces only the letters in lookAlikes. The letters l and i count as
// the same.
func Skeleton(line string) string {
	return strings.Map(func(r rune) rune {
		if like, ok := lookAlikes[r]; ok { // a capital letter may look like another one than its small one
			return like
		}
		switch r = unicode.ToLower(r); {
		case lookAlikes[r] != 0:
			return lookAlikes[r]
		case unicode.IsLetter(r):
			return r
		default: // also accents, which NFKD has separated from their letters
			return -1
		}
	}, norm.NFKD.String(line))
}

// LongestMarks returns how many marks are drawn over, under or through a letter of a line at most.
// The mark of a composed letter does not count.
func LongestMarks(line string) int {
	longest, marks := 0, 0
	for _, r := range norm.NFC.String(line) {
		if marks++; !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		}
		longest = max(longest, marks)
	}
	return longest
}
