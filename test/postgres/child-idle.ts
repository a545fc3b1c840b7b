// A process with everything open that a store opens: it listens, looks and follows. It has nothing left to do and must end by itself,
// but not before the one statement that is under way is answered, and what waits for its next try has had it. Run by idle.test.ts.
import { Fault } from '../../src/kernel/failure.ts'
import { ChannelTransport } from '../../src/live/channel-transport.ts'
import { SharedLive } from '../../src/live/shared-live.ts'
import { steadyClock as clock } from '../../src/stores/plan/system-clock.ts'
import { buildNetwork } from '../../src/stores/postgres/network.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { create } from '../contract/fixture.ts'
import { Directory } from '../runtime/live-directory.ts'

const { connections, hints, post } = buildNetwork({ url: process.argv[2] ?? '' }, 'test')
await connections.open()
await hints(() => {}).start()
const directory = new Directory()
const live = new SharedLive({ store: directory, clock, openTransport: async () => new ChannelTransport(post(), clock) })
await live.serve('w', 60_000)
live.subscribe('s', () => {})
process.stdout.write('open\n')
await connections.reader.ask('slow', 'select 1 from pg_sleep(0.3)')
process.stdout.write('answered\n')
await connections.patience().after(new Fault('store_busy', 'busy'))
process.stdout.write('waited\n')
const store = postgres(process.argv[2] ?? '')
await create(store, 's')
// The hint of that commit is under way.
await store.close()
process.stdout.write('closed\n')
