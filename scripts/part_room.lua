-- room: one room in memory, with its seats, its events, its places in the indexes, its start and its two ends.
-- Needs clock, event, money, receipt.
-- gives the keys and arguments by name, R, seats, purses, taken, lay, open_room, answer, refuse, done, repeated, change, put, seat_of, alter, sit, rise,
-- active, staked_without_purse, affords, charge, give_back, tell, members, rehost, start, autostart, cancel, balanced, settle, found, save
--
-- Every room script has these first, and its own after them:
--   KEYS 1 room 2 events 3 receipt 4 due 5 open 6 created 7 started 8 finished 9 cancelled 10 all 11 every 12 totals 13 ledger
--        and at the very end wallet, lines and events of each player in purses
--   ARGV 1 publish 2 nonce 3 fingerprint 4 ttl 5 who 6 uid 7 game 8 purses (ids with commas)
-- A free room has no purses; its totals and ledger are never touched.
local room_key, stream_key, receipt_key, due_key, open_key = unpack(KEYS, 1, 5)
local status_key = {}
status_key.CREATED, status_key.STARTED, status_key.FINISHED, status_key.CANCELLED = unpack(KEYS, 6, 9)
local all_key, every_key, totals_key, ledger_key = unpack(KEYS, 10, 13)
local publish, nonce, fingerprint, ttl, who, uid, game = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local purses, ids = {}, {}
for id in string.gmatch(ARGV[8], '%d+') do ids[#ids + 1] = id end
for i, id in ipairs(ids) do
  local last = #KEYS - 3 * (#ids - i)
  purses[id] = {unpack(KEYS, last - 2, last)}
end

-- R maps every field of the room to its text, and what is packed in "set" and "state" by its own names; seats lists the seats in seating
-- order. Changes are made here first, of fields by put(); save() writes them. Few fields, since reading, answering and writing them is what
-- a small change costs.
local R, seats, changes, seats_changed
local was_status, was_open

local function put(field, value)
  R[field] = value
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end

local function active()
  local list = {}
  for i = 1, #seats do if seats[i].state == 'active' then list[#list + 1] = seats[i] end end
  return list
end

-- taken counts the seats that a newcomer cannot have.
local function taken()
  local n = 0
  for i = 1, #seats do if seats[i].state ~= 'forfeited' then n = n + 1 end end
  return n
end

local function is_open() return R.status == 'CREATED' and R.vis == 'public' and taken() < R.max + 0 end

-- lay unpacks the settings; the times are in ms.
local function lay(set)
  R.set = set
  R.room, R.game, R.token, R.dec, R.entry, R.max, R.min, R.friends, R.vis, R.auto, R.idle, R.age, R.match, R.keep, R.creator =
    string.match(set, '^(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.-)|(.*)$')
end

-- open_room reads the room and answers whether it is there.
local function open_room()
  local flat = redis.call('HGETALL', room_key)
  R, seats, changes, seats_changed, was_status, was_open = {}, {}, {}, false, nil, false
  if #flat == 0 then return false end
  for i = 1, #flat, 2 do R[flat[i]] = flat[i + 1] end
  lay(R.set)
  R.status, R.host, R.ver, R.pos, R.pot, R.hostp = string.match(R.state, '^(%u+)|(%d+)|(%d+)|([%d-]+)|(%d+)|(.*)$')
  for id, state, ready, since, stake, profile in string.gmatch(R.seats or '', '(%d+)|(%a+)|(%d)|(%d+)|(%d+)|([^\t]*)') do
    seats[#seats + 1] = {uid = id, state = state, ready = ready, since = since, stake = stake, profile = profile}
  end
  was_status, was_open = R.status, is_open()
  return true
end

-- answer is the word, the nonce (which tells a resend of this call from another call with its key) and the whole room in one
-- text, so that a call is one round trip. No value has a line break: all free text is in JSON.
local function answer(word)
  local list = {'set', R.set, 'doc', R.doc, 'created', R.created, 'state', R.state, 'seq', R.seq, 'seats', R.seats}
  if R.status ~= 'CREATED' then
    for _, field in ipairs({'started', 'finished', 'reason', 'results', 'payouts', 'refunds', 'rake', 'rematch'}) do
      if R[field] then
        list[#list + 1] = field
        list[#list + 1] = R[field]
      end
    end
  end
  return {word, nonce, table.concat(list, '\n')}
end

-- refuse keeps a refusal under the caller's key and answers it.
local function refuse(word, ...) return keep(receipt_key, fingerprint, ttl, {word, nonce, ...}) end

-- done keeps the room as it is now and answers it.
local function done() return keep(receipt_key, fingerprint, ttl, answer('ok')) end

-- repeated tells whether this very call was done before: its reply was lost and the client library sent it again.
-- Two calls of each caller are remembered, so that another call of the same caller in between does no harm.
local function repeated()
  local done = R['did:' .. who]
  return done and string.find(done, ',' .. nonce .. ',', 1, true) ~= nil
end

-- change opens a change: one version, one mark of the call.
local function change()
  R.ver = whole(R.ver + 1)
  put('changed', now)
  if who ~= '' then
    local last = string.match(R['did:' .. who] or '', '(%d+),$')
    put('did:' .. who, ',' .. (last and last .. ',' or '') .. nonce .. ',')
  end
end

local function seat_of(id)
  for i = 1, #seats do if seats[i].uid == id then return seats[i] end end
end

-- alter changes one member of a seat.
local function alter(s, member, value)
  s[member] = value
  seats_changed = true
end

-- rise takes a seat away.
local function rise(id)
  for i = 1, #seats do
    if seats[i].uid == id then table.remove(seats, i); break end
  end
  seats_changed = true
end

-- sit gives a seat, the last in order; it takes the place of a reserved one.
local function sit(id, state, stake, profile)
  rise(id)
  seats[#seats + 1] = {uid = id, state = state, ready = '0', since = now, stake = stake, profile = profile}
end

-- staked_without_purse tells whether the caller left out the wallet of somebody who has a stake in the pot.
local function staked_without_purse()
  for _, s in ipairs(seats) do
    if s.stake ~= '0' and not purses[s.uid] then return true end
  end
  return false
end

local function shift(id, delta, held, why)
  local p = purses[id]
  move(publish, nonce, p[1], p[2], p[3], R.token, R.dec, delta, held, why, R.room)
end

-- affords answers nil when the player can pay the entry, else the refusal.
local function affords(id)
  if R.entry == '0' then return nil end
  local free = redis.call('HGET', purses[id][1], 'free:' .. R.token)
  if covers(free, R.entry) then return nil end
  return {'insufficient_funds', free or '0', R.entry, R.token, R.dec}
end

-- charge moves the entry from the player's wallet into the pot.
local function charge(id)
  if R.entry == '0' then return end
  shift(id, '-' .. R.entry, R.entry, 'entry')
  book(totals_key, ledger_key, R.token, 'entry', R.room, 'w:' .. id .. ':-' .. R.entry .. ';e:' .. R.room .. ':' .. R.entry,
    {'wallets', 'escrow'}, {'-' .. R.entry, R.entry})
  R.pot = whole(R.pot + R.entry)
end

-- give_back moves one stake from the pot to its player.
local function give_back(s)
  if s.stake == '0' then return end
  shift(s.uid, s.stake, '-' .. s.stake, 'refund')
  book(totals_key, ledger_key, R.token, 'refund', R.room, 'e:' .. R.room .. ':-' .. s.stake .. ';w:' .. s.uid .. ':' .. s.stake,
    {'escrow', 'wallets'}, {'-' .. s.stake, s.stake})
  R.pot = whole(R.pot - s.stake)
end

-- tell writes one event; members are those of its data, without braces.
local function tell(kind, data)
  local seq = whole(R.seq + 1)
  put('seq', seq)
  R.pos = seq .. '-' .. nonce
  emit(publish, stream_key, 256, nonce, seq, kind, '"roomId":"' .. R.room .. '",', '{' .. data .. ',"version":' .. R.ver .. '}')
end

-- members are what joins and leaves tell about the room.
local function members()
  local list = active()
  for i = 1, #list do list[i] = list[i].profile end
  return '"participants":[' .. table.concat(list, ',') .. '],"totalWager":' .. decimal(R.pot, R.dec) ..
    ',"totalWagerAmount":"' .. R.pot .. '"'
end

local function amount(name, units) return '"' .. name .. '":' .. decimal(units, R.dec) .. ',"amount":"' .. units .. '"' end

-- rehost passes the role on when the host has gone; the last host of an empty room stays its host.
local function rehost()
  local list = active()
  for _, s in ipairs(list) do if s.uid == R.host then return end end
  if not list[1] then return end
  R.host, R.hostp = list[1].uid, list[1].profile
  tell('room.host_changed', '"userId":' .. R.host)
end

-- start locks the stakes; seats that are still reserved fall away.
local function start(by)
  for i = #seats, 1, -1 do
    if seats[i].state == 'reserved' then rise(seats[i].uid) end
  end
  R.status = 'STARTED'
  put('started', now)
  redis.call('ZADD', due_key, whole(now_ms + R.match), R.room)
  tell('room.started', '"by":"' .. by .. '","startedAt":"' .. iso(now_ms) .. '"')
end

-- autostart starts a room that wants it, when it is full or everybody (enough of them) is ready.
local function autostart()
  if R.auto ~= '1' or R.status ~= 'CREATED' then return end
  local list = active()
  local ready = true
  for _, s in ipairs(list) do ready = ready and s.ready == '1' end
  if #list == tonumber(R.max) or (ready and #list >= tonumber(R.min)) then start('auto') end
end

local function close(status)
  R.status = status
  put('finished', now)
  redis.call('ZADD', due_key, whole(now_ms + R.keep), R.room)
end

-- cancel ends the room and gives every stake back, those of the forfeited too.
local function cancel(reason)
  local refunds, posts = {}, {}
  for _, s in ipairs(seats) do
    if s.stake ~= '0' then
      shift(s.uid, s.stake, '-' .. s.stake, 'refund')
      refunds[#refunds + 1] = '{"userId":' .. s.uid .. ',' .. amount('refund', s.stake) .. '}'
      posts[#posts + 1] = ';w:' .. s.uid .. ':' .. s.stake
    end
  end
  if #posts > 0 then
    book(totals_key, ledger_key, R.token, 'refund', R.room, 'e:' .. R.room .. ':-' .. R.pot .. table.concat(posts),
      {'escrow', 'wallets'}, {'-' .. R.pot, R.pot})
  end
  put('reason', reason)
  put('refunds', '[' .. table.concat(refunds, ',') .. ']')
  close('CANCELLED')
  tell('room.cancelled', '"reason":"' .. reason .. '","refunds":' .. R.refunds)
end

-- balanced tells whether a plan ("<uid>:<place>:<units>;…", place 0 for a forfeited seat) and the rake share out the
-- pot exactly, among players who have a seat. No partial sum passes the pot, so every one is exact.
local function balanced(plan, rake)
  local pot, sum = tonumber(R.pot), tonumber(rake)
  for id, units in string.gmatch(plan, '(%d+):%d+:(%d+)') do
    if not seat_of(id) or tonumber(units) > pot or sum > pot then return false end
    sum = sum + tonumber(units)
  end
  return sum == pot
end

-- settle ends the room with a result: releases every stake, pays the plan and the rake. Ask balanced() and staked_without_purse() first.
local function settle(results, plan, rake)
  local paid, payouts, posts = {}, {}, {}
  for id, place, units in string.gmatch(plan, '(%d+):(%d+):(%d+)') do
    paid[id] = units
    payouts[#payouts + 1] = '{"userId":' .. id .. ',"place":' .. (place == '0' and 'null' or place) .. ',' .. amount('payout', units) .. '}'
    if units ~= '0' then posts[#posts + 1] = ';w:' .. id .. ':' .. units end
  end
  for _, s in ipairs(seats) do
    if s.stake ~= '0' then
      local won = paid[s.uid] or '0'
      shift(s.uid, won, '-' .. s.stake, won == '0' and 'lost' or 'payout')
    end
  end
  if R.pot ~= '0' then
    if rake ~= '0' then posts[#posts + 1] = ';h:' .. rake end
    book(totals_key, ledger_key, R.token, 'payout', R.room, 'e:' .. R.room .. ':-' .. R.pot .. table.concat(posts),
      {'escrow', 'wallets', 'house'}, {'-' .. R.pot, whole(R.pot - rake), rake})
  end
  put('results', results)
  put('payouts', '[' .. table.concat(payouts, ',') .. ']')
  put('rake', rake)
  close('FINISHED')
  tell('room.finished', '"results":' .. results .. ',"payouts":' .. R.payouts .. ',"rake":' .. decimal(rake, R.dec) ..
    ',"rakeAmount":"' .. rake .. '"')
end

-- found makes the room of the settings that were laid before, seats its creator and takes the stake; reserve lists seats to hold.
local function found(id, code, doc, profile, reserve)
  put('set', R.set)
  put('doc', table.concat({id, code, profile, doc}, '\t'))
  put('created', now)
  R.status, R.host, R.hostp, R.ver, R.seq, R.pot = 'CREATED', uid, profile, '0', '0', '0'
  change()
  sit(uid, 'active', R.entry, profile)
  charge(uid)
  for _, s in ipairs(reserve) do sit(s.uid, 'reserved', '0', s.profile) end
  redis.call('ZADD', all_key, '0', R.room)
  redis.call('ZADD', every_key, '0', R.room)
  redis.call('ZADD', due_key, whole(now_ms + math.min(tonumber(R.idle), tonumber(R.age))), R.room)
  tell('room.created', '"code":"' .. code .. '","gameId":' .. R.game .. ',"creator":' .. profile .. ',"maxPlayers":' .. R.max ..
    ',"tokenId":' .. (R.token == '' and 'null' or '"' .. R.token .. '"') ..
    ',"roomEntry":' .. decimal(R.entry, R.dec) .. ',"roomEntryAmount":"' .. R.entry .. '",' .. members())
  autostart()
end

-- save writes what changed, and moves the room in the indexes.
local function save()
  put('state', table.concat({R.status, R.host, R.ver, R.pos, R.pot, R.hostp}, '|'))
  if seats_changed then
    local list = {}
    for i = 1, #seats do
      local s = seats[i]
      list[i] = table.concat({s.uid, s.state, s.ready, s.since, s.stake, s.profile}, '|')
    end
    put('seats', table.concat(list, '\t'))
  end
  redis.call('HSET', room_key, unpack(changes))
  if R.vis ~= 'public' then return end
  if R.status ~= was_status then
    if was_status then redis.call('ZREM', status_key[was_status], R.room) end
    redis.call('ZADD', status_key[R.status], '0', R.room)
  end
  local open = is_open()
  if open ~= was_open then redis.call(open and 'ZADD' or 'ZREM', open_key, unpack(open and {'0', R.room} or {R.room})) end
end
