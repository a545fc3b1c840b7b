// A person at a terminal is shown the hooks of the configuration before the first use.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

describe.skipIf(noTmux)('new hooks at a terminal', { timeout: 120_000 }, () => {
  it('B-CLI-384: no goes on without them, also in another mode, and yes runs them from then on', async () => {
    await scriptedBy(['One.', 'Two.', 'Three.'], { hooks: [{ on: 'run_end', command: 'touch "$HOME/ran"' }] })
    const ran = (): boolean => existsSync(join(stage.folder, '..', 'ran'))
    const seen = openScreen(stage)
    seen.enter('clear; terret')
    await seen.until(
      /run_end: touch "\$HOME\/ran"[\s\S]*May they run\?[\s\S]*❯ Yes, from now on\n\s+No, go on without them/,
    )
    seen.keys('Down')
    seen.keys('Enter')
    await seen.until(PROMPT)
    seen.enter('/mode auto')
    await seen.until(/mode auto\n[\s\S]*\n›$/)
    seen.enter('Say one.')
    await seen.until(/One\.[\s\S]*tokens\n[\s\S]*\n›$/)
    expect(ran()).toBe(false)
    seen.keys('C-d')
    await seen.until('Go on with')
    seen.enter('clear; terret')
    await seen.until('May they run?')
    seen.keys('Enter')
    await seen.until(PROMPT)
    seen.enter('Say two.')
    await seen.until(/Two\.[\s\S]*tokens\n[\s\S]*\n›$/)
    expect(ran()).toBe(true)
    seen.keys('C-d')
    await seen.until('Go on with')
    seen.enter('clear; terret -p "Say three."')
    await seen.until(/Three\.[\s\S]*\n\$$/)
    expect(seen.text()).not.toContain('May they run?')
  })
})
