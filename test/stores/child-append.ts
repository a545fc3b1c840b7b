// A process that appends one message to a session each time it is told to. Run by sqlite-processes.test.ts.
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { message } from '../contract/fixture.ts'

const store = sqlite(process.argv[2] ?? '')
let count = 0
process.on('message', (session: string) => {
  count += 1
  const events = [message(`child-${process.pid}-${count}`)]
  void store.commit([{ session, lane: 'inbox', events }]).then(() => process.send?.('appended'))
})
process.on('disconnect', () => void store.close())
await store.due(0)
process.send?.('ready')
