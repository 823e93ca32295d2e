package text_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/text"
)

func TestLinesThatLookAlikeHaveTheSameSkeleton(t *testing.T) {
	admin := text.Skeleton("admin")
	for _, line := range []string{
		"ADMIN", "Ⓐdmin", "Ａｄｍｉｎ", "аdmin", "аԁміп", "ΑDΜΙΝ", "4dm1n", "@dm!n", "áḋm̈ìñ", "𝓪𝓭𝓶𝓲𝓷", "🄰🄳🄼🄸🄽", "ᴀᴅᴍɪɴ",
		"a d m i n", "a.d-m_i·n", "admln", "adm\u0131n",
	} {
		if got := text.Skeleton(line); got != admin {
			t.Errorf("%q looks like %q, want %q", line, got, admin)
		}
	}
	for _, line := range []string{"adam", "badminton", "admins", "李小龙", "Админ мой", ""} {
		if text.Skeleton(line) == admin {
			t.Errorf("%q looks like admin", line)
		}
	}
}

func TestHowManyMarksALetterHas(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "Ada": 0, "José": 0, "Jose\u0301": 0, "Việt": 0, "Vie\u0323\u0302t": 0, "q\u0307\u0323": 2,
		"སྒྲུབ": 3, "กี่": 2, "שָּׁ": 3, "a" + strings.Repeat("\u0336", 8) + "b": 8,
	} {
		if got := text.LongestMarks(line); got != want {
			t.Errorf("%+q has %d, want %d", line, got, want)
		}
	}
}
