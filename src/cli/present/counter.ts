// One line that counts progress. At a terminal it is redrawn, and erased at the end. In a pipe nothing is written.

export type Counter = { show(text: () => string): void; clear(): void }

const EVERY_MS = 100

export function openCounter(out: NodeJS.WriteStream, isSilent: boolean): Counter {
  if (isSilent || !out.isTTY || process.env['TERM'] === 'dumb') return { show: () => {}, clear: () => {} }
  let shown = 0
  return {
    show(text) {
      const now = performance.now()
      if (now - shown < EVERY_MS) return
      shown = now
      out.write(`\r\x1b[K${text().slice(0, (out.columns || 80) - 1)}`)
    },
    clear: () => void (shown > 0 && out.write('\r\x1b[K')),
  }
}
