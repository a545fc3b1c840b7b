// The example of docs/guide/skills.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Harness, scripted } from '../../src/index.ts'
import { skillTools } from '../../src/tools/index.ts'

mkdirSync('work', { recursive: true })
mkdirSync('skills/greeting', { recursive: true })
writeFileSync('skills/greeting/greet.sh', 'echo "Good day, $1" > greeting.txt\n')
writeFileSync(
  'skills/greeting/SKILL.md',
  `---
name: greeting
description: How we greet customers.
---
Run greet.sh with the name of the customer.
`,
)

// Offline: a script stands for the model.
const model = scripted([
  { calls: [{ tool: 'skill_read', args: { name: 'greeting' } }] },
  { calls: [{ tool: 'skill_run', args: { name: 'greeting', script: 'greet.sh', args: ['Ada'] } }] },
  'Done.',
])
const tools = await skillTools({ folder: 'skills', workspace: 'work' })
const harness = new Harness({ model, tools })
await harness.run('Greet Ada.')
console.log(readFileSync('work/greeting.txt', 'utf8')) // Good day, Ada
await harness.close()
