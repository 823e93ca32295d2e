-- board_submit: adds a score to a player's entry in a season of a leaderboard, or changes nothing.
-- INCLUDES  clock receipt call board
-- KEYS      1 season  2 rank  3 entries  4 details  then the play when one is named, the zset of
--           each segment
-- ARGV      4 user  5 from: ms at which the season takes scores  6 to: ms from which it takes none,
--           '' for no end  7 order: asc or desc  8 operator  9 units: score in units  10 sub_order:
--           order of the subscore, '' without one  11 sub_operator: its operator  12 sub_units:
--           subscore in units  13 segments: '' when none are given  14 details: as JSON, '' for
--           none  15 most_entries: '' for any number  16 longest_step: longest step in units, ''
--           for any  17 interval_ms: shortest interval in ms, '' for any  18 most_submissions: ''
--           for any number  19 play: 1 when one is named  20 shortest_ms: shortest play in ms
--           21 longest_ms: longest play in ms  22 number: of the season
-- RETURNS   ok replay stale idempotency_key_reused score_rejected submissions_exhausted
--           segment_fixed board_full play_not_found play_used play_expired
-- INVARIANT a sealed season takes no score; a zset has exactly one member of each player who is not
--           hidden; no entry is older than one before it
-- After ok follow 1 or 0 for whether the entry has changed, score and subscore before, '' for none,
-- and the season; a resend without a key replies as to a new entry. After stale follow the store's
-- time and the segments that are stored, which must be given with their keys. After score_rejected
-- follows the rule.
units, sub_units = tonumber(units), tonumber(sub_units)
local first_segment, last_segment = NEXT_KEY, #KEYS - (receipt_key and 1 or 0)
local play_key = play == '1' and KEYS[first_segment]
if play_key then first_segment = NEXT_KEY + 1 end

local season = redis.call('HMGET', season_key, 'state', 'clock')
local now_ms, now = read_clock()
local clock = tonumber(season[2] or '0')
local at = math.max(now_ms, clock)
if season[1] or at < tonumber(from) or to ~= '' and at >= tonumber(to) then return {'stale', nonce, now, ''} end

local record = redis.call('HGET', entries_key, user)
local key, submissions, flags, last_nonce = '', 0, '', ''
local old_score, old_sub
if record then
  key, submissions, flags, last_nonce = read_record(record)
  old_score = unpack_score(key, 1, order)
  old_sub = sub_order ~= '' and unpack_score(key, 8, sub_order) or nil
  if last_nonce == nonce then return {'ok', nonce, '1', '', '', number} end
end
local is_hidden, has_segments = string.find(flags, 'h', 1, true), string.find(flags, 's', 1, true)
local gets_segments = segments ~= '' and not has_segments
if has_segments then
  local stored = redis.call('HGET', details_key, user .. ':s')
  if segments == '' then return {'stale', nonce, now, stored} end
  if segments ~= stored then
    -- A cohort of a league, "@", is there alone until others are given.
    if string.byte(stored) ~= 64 or string.sub(segments, -#stored) ~= stored then
      return refuse('segment_fixed', nonce)
    end
    gets_segments = true
  end
end
if most_submissions ~= '' and submissions >= tonumber(most_submissions) then
  return refuse('submissions_exhausted', nonce)
end
if not record and most_entries ~= '' and redis.call('ZCARD', rank_key) >= tonumber(most_entries) then
  return refuse('board_full', nonce)
end
if interval_ms ~= '' then
  local last = redis.call('HGET', details_key, user .. ':t')
  if last and now_ms - last < tonumber(interval_ms) then
    return refuse('score_rejected', nonce, 'minIntervalSeconds')
  end
end
if play_key then
  local stored = redis.call('GET', play_key)
  local player, started = string.match(stored or '', '^(%d+)|(%d+)$')
  if stored == 'used' then return refuse('play_used', nonce) end
  if player ~= user then return refuse('play_not_found', nonce) end
  if now_ms - started > tonumber(longest_ms) then return refuse('play_expired', nonce) end
  if now_ms - started < tonumber(shortest_ms) then return refuse('score_rejected', nonce, 'minPlaySeconds') end
end

local function is_better(a, b, by)
  if by == 'asc' then return a < b end
  return a > b
end
local function combine(how, by, old, new)
  if how == 'last' then return new end
  if how == 'sum' then return old + new end
  if how == 'min' then return math.min(old, new) end
  if how == 'max' then return math.max(old, new) end
  return is_better(new, old, by) and new or old
end
local score, sub = units, sub_units
if record then
  score = combine(operator, order, old_score, units)
  if old_sub and sub_operator == 'best' and operator ~= 'last' and operator ~= 'sum' and units ~= old_score then
    sub = score == units and sub_units or old_sub -- the subscore is that of the score
  elseif old_sub then
    sub = combine(sub_operator, sub_order, old_sub, sub_units)
  end
  if longest_step ~= '' and math.abs(score - old_score) > tonumber(longest_step) then
    return refuse('score_rejected', nonce, 'maxStep')
  end
end
if math.abs(score) >= 4503599627370496 or old_sub and math.abs(sub) >= 4503599627370496 then
  return refuse('score_rejected', nonce, 'range')
end

local is_changed = not record or score ~= old_score or old_sub and sub ~= old_sub
local packed_user, old_member, member
if is_changed or gets_segments then
  packed_user = pack_bytes(tonumber(user), 6)
  old_member = record and key .. packed_user
  member = old_member
end
if is_changed then
  local packed_sub = sub and pack_score(sub, sub_order) or '\16\0\0\0\0\0\0' -- as a subscore of 0
  key = pack_score(score, order) .. packed_sub .. pack_bytes(at, 6)
  member = key .. packed_user
  if not is_hidden then
    count_top(season_key, rank_key, old_member and is_before(old_member, member) and old_member or member)
  end
  for i = first_segment - 1, not is_hidden and last_segment or 0 do
    local zset_key = i < first_segment and rank_key or KEYS[i]
    if old_member then redis.call('ZREM', zset_key, old_member) end
    redis.call('ZADD', zset_key, '0', member)
  end
  -- Of many scores in a millisecond one sets the clock.
  if at > clock then redis.call('HSET', season_key, 'clock', string.format('%d', at)) end
  if details ~= '' then
    redis.call('HSET', details_key, user, details)
    if not string.find(flags, 'd', 1, true) then flags = flags .. 'd' end
  elseif string.find(flags, 'd', 1, true) then
    redis.call('HDEL', details_key, user)
    flags = string.gsub(flags, 'd', '')
  end
elseif gets_segments and not is_hidden then
  for i = first_segment, last_segment do redis.call('ZADD', KEYS[i], '0', member) end
end
if gets_segments then
  redis.call('HSET', details_key, user .. ':s', segments)
  for segment in string.gmatch(segments, '[^,@]+=[^,]+') do redis.call('HSET', season_key, 'z:' .. segment, '1') end
  if not has_segments then flags = flags .. 's' end
end
if interval_ms ~= '' then redis.call('HSET', details_key, user .. ':t', now) end
if play_key then redis.call('SET', play_key, 'used', 'KEEPTTL') end
write_record(entries_key, user, key, submissions + 1, flags, receipt_key and '' or nonce)
return save_receipt(receipt_key, fingerprint, ttl_ms, {
  'ok', nonce, is_changed and '1' or '0', old_score and string.format('%d', old_score) or '',
  old_sub and string.format('%d', old_sub) or '', number,
})
