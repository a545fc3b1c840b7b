// `npm start`: works on whatever is due, until it is stopped. Start as many as you like, on as many machines.
import { onStop, openHarness } from './harness.ts'

const { harness, store } = openHarness({ drives: true })
onStop(() => harness.close())
console.log(`Worker ${process.pid} works.`)
await harness.work()
await store.close()
