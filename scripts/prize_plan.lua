-- prize_plan: appends lines to the plan of a source of prizes, or changes nothing. The plan is
-- whole with its last line, and counts from then on.
-- INCLUDES  amounts
-- KEYS      1 prize  2 plan
-- ARGV      1 digest: of the whole plan  2 lines: lines of the whole plan  3 before: lines before
--           these  then the lines
-- RETURNS   ok stale invalid_amount
-- INVARIANT a plan pays at most its pool; its lines are all of one digest, and never change once it
--           is whole
-- Lines of another plan that is not whole are dropped with the first line: who made them is gone.
before = tonumber(before)

local stored = redis.call('HMGET', prize_key, 'state', 'digest', 'pool', 'planned')
if stored[1] then return 'ok' end
local pool, planned, length = stored[3] or '0', stored[4] or '0', redis.call('LLEN', plan_key)
local count = #ARGV - NEXT_ARG + 1
local is_other = stored[2] ~= digest
if is_other then planned, length = '0', 0 end
if length >= before + count and count > 0 then return 'ok' end
if length ~= before then return 'stale' end
for i = NEXT_ARG, #ARGV do
  planned = add_amounts(planned, string.match(ARGV[i], '^%d+:%d+:(%d+):'))
  if not has_at_least(pool, planned) then return 'invalid_amount' end
end

if is_other then redis.call('DEL', plan_key) end
if count > 0 then redis.call('RPUSH', plan_key, unpack(ARGV, NEXT_ARG)) end
redis.call('HSET', prize_key, 'digest', digest, 'planned', planned, 'lines', lines)
if before + count == tonumber(lines) then
  redis.call('HSET', prize_key, 'state', 'PLANNED', 'next', '0', 'paid', '0', 'pool', pool)
end
return 'ok'
