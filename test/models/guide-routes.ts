// The example of docs/guide/models.md on routes, word for word but for this line and its imports. routes.test.ts compares and runs it.
import { Harness, routeProfiles, scripted } from '../../src/index.ts'

const routes = {
  chat: scripted(['Good morning.', 'Yes, in a word.'], 'the-large-one'),
  burst: scripted([{ error: 'server', message: 'down' }], 'the-small-one'),
}
const harness = new Harness({ model: 'hint:chat', models: { routes } })
console.log((await harness.run('Say hello.')).text)

const quick = await harness.run('In a word?', { model: 'hint:burst' })
const { events } = await harness.session(quick.sessionId).events()
for (const event of events)
  if (event.type === 'agent.message') console.log(quick.text, 'by', event.route, 'instead of', event.fallback_from)

for (const { workload, of, profile } of await routeProfiles(routes))
  if (profile !== null) console.log(`${workload}: ${profile.model} (route ${of})`)
await harness.close()
