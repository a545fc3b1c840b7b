// What a screen writes to its terminal.
import { describe, expect, it, vi } from 'vitest'
import { loadMarkdown } from '../../src/cli/present/markdown.ts'
import { Screen } from '../../src/cli/present/screen.ts'

/** What would clear the screen, or what was above it. */
const CLEARED = ['\u001b[2J', '\u001b[3J']

function openScreen() {
  const written: string[] = []
  const out = { columns: 80, rows: 24, write: (text: string) => void written.push(text) }
  let typed = ''
  const screen = new Screen(out as unknown as NodeJS.WriteStream, {
    colours: false,
    input: () => ({ rows: [`› ${typed}`], row: 0, column: 2 + typed.length }),
  })
  const type = (text: string): void => {
    typed = text
    screen.draw()
  }
  const taken = (): string => written.splice(0).join('')
  return { screen, out, type, taken }
}

describe('a screen', () => {
  it('B-CLI-315: only rows that changed are written, and nothing if none did', () => {
    const { screen, type, taken } = openScreen()
    screen.show(() => ({ calls: ['  ✓ one'], status: 'status' }))
    screen.draw()
    expect(taken()).toContain('✓ one')
    screen.draw()
    expect(taken()).toBe('')
    type('x')
    expect(taken()).toMatch(/› x/)
    type('xy')
    const frame = taken()
    expect(frame.startsWith('\u001b[?2026h') && frame.endsWith('\u001b[?2026l')).toBe(true)
    expect(frame).toContain('› xy')
    expect(frame).not.toContain('status')
    screen.close(false)
  })

  it('B-CLI-315: a text of many pieces costs few bytes, each row is written whole once, and nothing clears the screen', async () => {
    await loadMarkdown()
    vi.useFakeTimers()
    const { screen, taken } = openScreen()
    let bytes = 0
    let all = ''
    const tokens = 600
    for (let i = 0; i < tokens; i += 1) {
      screen.speak(i % 12 === 11 ? `word${i}.\n\n` : `word${i} `)
      vi.advanceTimersByTime(10)
      const text = taken()
      bytes += text.length
      all += text
    }
    screen.hush()
    vi.useRealTimers()
    screen.close(false)
    expect(bytes / tokens).toBeLessThan(70)
    for (const erase of CLEARED) expect(all).not.toContain(erase)
  })

  it('B-CLI-315: another size redraws the live part only', () => {
    const { screen, out, type, taken } = openScreen()
    screen.say('note', 'above')
    type('draft')
    taken()
    out.columns = 40
    screen.draw()
    expect(taken()).toContain('› draft')
    out.columns = 20
    screen.draw()
    const frame = taken()
    expect(frame).toContain('› draft')
    expect(frame).not.toContain('above')
    for (const erase of CLEARED) expect(frame).not.toContain(erase)
    screen.close(false)
  })

  it('B-CLI-315: a frame has the size that the terminal has by then, also if its signal comes later', () => {
    const { screen, out, taken } = openScreen()
    let columns = 80
    const asked = (): void => void (out.columns = columns)
    process.on('SIGWINCH', asked)
    screen.rest(() => 'x'.repeat(screen.columns))
    screen.draw()
    taken()
    columns = 40
    screen.draw()
    const frame = taken()
    process.off('SIGWINCH', asked)
    expect(frame).toContain('x'.repeat(39))
    expect(frame).not.toContain('x'.repeat(40))
    // The row took two rows of the narrower terminal, and both are gone.
    expect(frame).toContain('\u001b[2A')
    screen.close(false)
  })
})
