// `npm start` asks the agent, and stops where a person must agree. `npm start -- yes` and `npm start -- no` decide, in
// another process: tomorrow is early enough.
import { userInfo } from 'node:os'
import { openAgent } from './agent.ts'

const { harness, store } = openAgent()
const said = process.argv.slice(2).join(' ')
const [waiting] = await harness.pending()

if (said === 'yes' || said === 'no') {
  if (waiting === undefined) console.log('Nothing waits for you.')
  else {
    const session = harness.session(waiting.sessionId)
    await session.decide({ ...waiting, allow: said === 'yes', by: userInfo().username })
    const { status, text } = await session.run()
    console.log(`${status}: ${text}`)
  }
} else {
  const { status, text, pending } = await harness.run(said || 'Order 17 arrived broken. Please refund it.')
  console.log(`${status}: ${text}`)
  for (const { tool, args } of pending ?? [])
    console.log(`May I ${tool} ${JSON.stringify(args)}? npm start -- yes, or npm start -- no`)
}

await harness.close()
await store.close()
