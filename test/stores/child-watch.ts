// A process that watches a store and has nothing else to do: it must end by itself. Run by sqlite-processes.test.ts.
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { message } from '../contract/fixture.ts'

const store = sqlite(process.argv[2] ?? '')
store.watch('s', () => {})
store.watchDue(() => {})
await store.commit([{ session: 's', lane: 'inbox', events: [message('from the child')] }])
console.log('watching')
