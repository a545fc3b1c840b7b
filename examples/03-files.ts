// 03 · File tools and a policy: an agent that may read everything in a folder, edit its notes, and nothing else.
// Run it: README.md here says how.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Harness, scripted } from 'terret'
import { fileTools } from 'terret/tools'

const workspace = mkdtempSync(join(tmpdir(), 'terret-example-'))
writeFileSync(join(workspace, 'notes.md'), '# Notes\n\nThe meeting is on Monday.\n')
writeFileSync(join(workspace, 'contract.md'), 'Signed.\n')

const model = scripted([
  { calls: [{ tool: 'read', args: { path: 'notes.md' } }] },
  {
    calls: [
      { tool: 'edit', args: { path: 'notes.md', old_string: 'Monday', new_string: 'Tuesday' } },
      { tool: 'write', args: { path: 'contract.md', content: 'Void.' } },
    ],
  },
  (request) => `Done, with ${request.messages.filter((m) => m.role === 'tool' && !m.ok).length} call refused.`,
])

const harness = new Harness({
  model,
  tools: fileTools({ root: workspace }),
  approvals: {
    policy: {
      rules: [{ effect: 'deny', tool: ['write', 'edit'], path: 'contract.md', reason: 'contracts are final' }],
    },
  },
})
const result = await harness.run('The meeting moved to Tuesday. Please note that.')
console.log(`${result.status}: ${result.text}`)
console.log(readFileSync(join(workspace, 'notes.md'), 'utf8').trim())
console.log(readFileSync(join(workspace, 'contract.md'), 'utf8').trim())
await harness.close()
rmSync(workspace, { recursive: true })
