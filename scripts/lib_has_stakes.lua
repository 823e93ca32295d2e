-- lib_has_stakes: whether money hangs on a room.
-- has_stakes reports whether a room takes an entry or feeds what pays: stakes is the field that its
-- creation has stored. A room without the field was made by an older build, or feeds nothing that
-- pays: a match then counts as one with stakes.
local function has_stakes(stakes, entry, feeds)
  if stakes then return stakes == '1' end
  return entry ~= '0' or string.byte(feeds) == 116 -- "t.": a match
end
