// The example of docs/guide/subagents.md, as it stands there.
import { Harness, scripted } from '../../src/index.ts'

const model = scripted(({ session, messages }) => {
  if (session.includes('~')) return 'The harbour opens at six.'
  const told = JSON.stringify(messages)
  if (told.includes('<subagent_report')) return 'It opens at six.'
  if (told.includes('spawned_new')) return 'I am finding out.'
  return {
    calls: [{ tool: 'spawn_subagent', args: { agent_id: 'researcher', prompt: 'When does the harbour open?' } }],
  }
})
const harness = new Harness({
  model,
  subagents: { researcher: { description: 'finds things out' } },
  detached: true,
})
const session = await harness.open()
console.log((await session.run('When does the harbour open?')).text) // I am finding out.
while ((await session.status()).text !== 'It opens at six.') await new Promise((resolve) => setTimeout(resolve, 20))
const { children } = await session.status({ include: ['children'] })
console.log(children.map(({ agent, status }) => `${agent}: ${status}`).join()) // researcher: idle
await harness.close()
