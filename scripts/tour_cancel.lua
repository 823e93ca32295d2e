-- tour_cancel: begins to cancel a tournament that is not being settled, or changes nothing.
-- INCLUDES  clock skewed_clock tour
-- FLAGS     allow-oom
-- KEYS      1 tour  2 due  3 fence
-- ARGV      1 nonce  2 fence: '' for staff  3 tour_id: tournament id  4 why:
--           operator, server, unplayed, or expired, which waits for its time  5 node_ms: the time
--           of the node
-- RETURNS   ok stale tournament_not_found tournament_closed
-- INVARIANT what is being settled is not cancelled
-- Stale means that the leader has a successor, or, with "clock" behind it, that the clocks of store
-- and node differ.
local nonce_of_call = nonce -- below, nonce is that of the last event
if is_replaced(fence_key, fence) then return {'stale', 'fence'} end
local fields = redis.call('HMGET', tour_key, 'settings', 'live')
if not fields[1] then return {'tournament_not_found'} end
UNPACK(fields[1], tour_settings: ends)
UNPACK(fields[2], tour_live)
if status == 'CANCELLING' or status == 'CANCELLED' then return 'ok' end
if status == 'SETTLING' or status == 'FINISHED' then return {'tournament_closed', nonce_of_call} end
local now_ms, now = read_clock()
if why == 'expired' and is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if why == 'expired' and (ends == '' or now_ms < tonumber(ends)) then return 'ok' end

keep_fence(fence_key, fence)
call, status, cursor, version = nonce_of_call, 'CANCELLING', '0', string.format('%d', version + 1)
redis.call('HSET', tour_key, 'live', PACK(tour_live), 'reason', why)
redis.call('ZADD', due_key, now, tour_id)
return 'ok'
