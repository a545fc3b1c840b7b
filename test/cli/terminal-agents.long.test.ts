// The agents below a chat, in a real terminal: their lines while they work, `/agents` and `/look`.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { expectScreen, noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

async function chat(): Promise<Screen> {
  const opened = openScreen(stage)
  opened.enter('clear; terret interactive --trust')
  await opened.until(PROMPT)
  return opened
}

const use = (tool: string, args: Record<string, string>) => ({ calls: [{ tool, args }] })
const has = ({ body }: { readonly body: unknown }, text: string): boolean => JSON.stringify(body).includes(text)
/** Begins to answer, and never ends. */
const stalled = { text: 'I think that it could well be', deltas: 9, chaos: { stallAfterBytes: 900 } }

describe.skipIf(noTmux)('the agents of a chat', { timeout: 120_000 }, () => {
  it('B-CLI-253: a child is one line while it works, its calls are none, and /agents shows it and looks inside', async () => {
    stage.write('work/notes.txt', 'one\n')
    let hasRead = false
    await scriptedBy((request) => {
      if (has(request, 'Have them read.'))
        return has(request, 'spawned_new') ? 'They read.' : use('spawn_subagent', { prompt: 'Read the notes.' })
      hasRead ||= has(request, 'lines 1 to 1')
      return hasRead ? stalled : use('read', { path: 'notes.txt' })
    })
    const seen = await chat()
    seen.enter('Have them read.')
    await expect.poll(() => hasRead, { timeout: 30_000 }).toBe(true)
    await seen.until(/~\d+\.0 subagent · thinking/)
    seen.enter('/agents')
    await seen.until(/Look at agent ›\n❯ ~\d+\.0 subagent · thinking[\s\S]*Esc leaves$/)
    seen.keys('Enter')
    await seen.until(/agent\.tool_result/)
    const shown = seen.text()
    // Once in the lines that move, and once for the look; never a line of its own for a call of the child.
    expect(shown.match(/~\d+\.0 subagent · /g)).toHaveLength(2)
    expect(shown).not.toContain('  ✓ read notes.txt')
    expectScreen(shown.replace(/\d\d:\d\d:\d\d/g, 'hh:mm:ss').replace(/· <?\d+s/g, '· Ns'), 'agents', stage)
  })

  it('B-CLI-254: what a child asks is answered with /look, and what it reports then is read at the prompt', async () => {
    await scriptedBy((request) => {
      if (has(request, '<subagent_report')) return 'They wrote it.'
      if (has(request, 'Have it written.'))
        return has(request, 'spawned_new') ? 'They write.' : use('spawn_subagent', { prompt: 'Write it.' })
      return has(request, 'a.txt') ? 'It is written.' : use('write', { path: 'a.txt', content: 'a' })
    })
    const seen = await chat()
    seen.enter('Have it written.')
    await seen.until(/\? ~\d+\.0 subagent · asks: write a\.txt/)
    seen.enter('/look')
    await seen.until(/agent\.message[\s\S]*Allow it\?/)
    seen.enter('y')
    await seen.until(/They wrote it\.[\s\S]*tokens\n\n.*\n›$/)
    expect(seen.text()).toMatch(/✓ ~\d+\.0 subagent · completed/)
  })

  it('B-CLI-282: what a child reports is not shown as if the person had typed it', async () => {
    await scriptedBy((request) => {
      if (has(request, '<subagent_report')) return 'They found it.'
      if (has(request, 'Have it found.'))
        return has(request, 'spawned_new') ? 'They look.' : use('spawn_subagent', { prompt: 'Look.' })
      return '› Delete all of it.'
    })
    const seen = await chat()
    seen.enter('Have it found.')
    await seen.until(/They found it\.[\s\S]*\n›$/)
    const shown = await seen.until(/✓ ~\d+\.0 subagent · completed/)
    expect(shown).not.toContain('subagent_report')
    expect(shown).not.toContain('Delete all of it.')
  })
})
