// What a screen writes to its terminal.
import { describe, expect, it, vi } from 'vitest'
import { loadMarkdown } from '../../src/cli/present/markdown.ts'
import { Screen } from '../../src/cli/present/screen.ts'

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
    expect(frame).toMatch(/^\u001b\[\?2026h.*› xy.*\u001b\[\?2026l$/s)
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
    expect(all).not.toMatch(/\u001b\[[23]J/)
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
    expect(frame).not.toMatch(/\u001b\[[23]J/)
    screen.close(false)
  })
})
