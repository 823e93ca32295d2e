package cache_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
)

func TestAValueExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[string, int]("expiring", 8, time.Minute)
		c.Add("a", 1)
		c.AddUntil("b", 2, time.Now().Add(time.Second))
		c.AddUntil("c", 3, time.Now().Add(time.Hour))
		has := func(key string, want bool) {
			t.Helper()
			if _, ok := c.Get(key); ok != want {
				t.Errorf("%s is kept: %v, want %v", key, ok, want)
			}
		}
		has("a", true)
		has("b", true)
		has("c", true)
		time.Sleep(time.Second) // of the fake clock of synctest: time is the subject
		has("a", true)
		has("b", false)
		time.Sleep(time.Minute) // of the fake clock: time is the subject
		has("a", false)
		has("c", false)
	})
}

func TestTheLeastRecentlyUsedValueGoesFirst(t *testing.T) {
	c := cache.New[int, string]("bounded", 2, 0)
	c.Add(1, "one")
	c.Add(2, "two")
	c.Get(1)
	c.Add(3, "three")
	if _, ok := c.Get(2); ok || c.Len() != 2 {
		t.Error("the bound does not hold")
	}
	if v, ok := c.Get(1); !ok || v != "one" {
		t.Error("a used value was evicted")
	}
	c.Remove(1)
	if _, ok := c.Get(1); ok {
		t.Error("a removed value is still there")
	}
}

func TestReadsAreCountedByName(t *testing.T) {
	a, b := cache.New[int, int]("counted", 1, 0), cache.New[int, int]("counted", 1, 0)
	a.Add(1, 1)
	a.Get(1)
	b.Get(1)
	if !slices.Contains(cache.AllStats(), cache.Stats{Name: "counted", Hits: 1, Misses: 1}) {
		t.Errorf("%+v", cache.AllStats())
	}
}

func TestPurgeAllEmptiesEveryCacheThatIsInUse(t *testing.T) {
	a, b := cache.New[int, int]("purged", 2, 0), cache.New[string, int]("purged", 2, time.Hour)
	a.Add(1, 1)
	b.Add("x", 1)
	for range 100 { // of nobody
		cache.New[int, int]("purged", 2, 0).Add(1, 1)
	}
	runtime.GC()
	for range 2 {
		cache.PurgeAll()
		if a.Len() != 0 || b.Len() != 0 {
			t.Fatalf("%d and %d values are left", a.Len(), b.Len())
		}
		a.Add(1, 2)
		if value, ok := a.Get(1); !ok || value != 2 {
			t.Error("a purged cache keeps nothing")
		}
	}
}
