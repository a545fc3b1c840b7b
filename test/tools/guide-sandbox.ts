// The example of docs/guide/sandbox.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { Harness, scripted } from '../../src/index.ts'
import { bashTool } from '../../src/tools/index.ts'

mkdirSync('work', { recursive: true })
// Offline: a script stands for the model.
const model = scripted([{ calls: [{ tool: 'bash', args: { command: 'echo x > here; echo x > ~/there' } }] }, 'Done.'])
const harness = new Harness({
  model,
  tools: [bashTool({ workspace: 'work' })],
  // Nobody is asked about a risky command, so that only the walls are left.
  approvals: { policy: { rules: [{ effect: 'allow', tool: 'bash' }] } },
})
await harness.run('Try to write.')
console.log(readdirSync('work'), existsSync(`${homedir()}/there`)) // [ 'here' ] false
await harness.close()
