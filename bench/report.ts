// How figures are shown: a table for people, one JSON object a line for programs.
import { cpus } from 'node:os'
import { sqliteVersion } from './bare.ts'
import type { Measured } from './measure.ts'

export function jsonLine({ name, value, unit, floor, ratio, target, ok }: Measured): string {
  return JSON.stringify({ name, value, unit, floor, ratio, target, ok })
}

/** Ratios compare within one run; the rest means something only together with this line. */
export function machineLine(): string {
  const { platform, arch, version } = process
  return `node ${version} · SQLite ${sqliteVersion()} · ${cpus().length} CPUs · ${platform} ${arch} · medians`
}

const WIDTHS = [14, 10, 16, 10, 8, 8, 6] as const

export function headLine(): string {
  return line(['name', 'value', 'unit', 'floor', 'ratio', 'target', 'ok', ''])
}

export function tableLine({ name, value, unit, floor, ratio, target, atLeast, ok, note }: Measured): string {
  const limit = `${atLeast ? '≥' : '≤'} ${target}`
  const verdict = ok === null ? '–' : ok ? 'yes' : 'NO'
  return line([name, shown(value), unit, shown(floor), ratio === null ? '–' : `${shown(ratio)}×`, limit, verdict, note])
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => cell.padEnd(WIDTHS[i] ?? 0))
    .join(' ')
    .trimEnd()
}

function shown(value: number | null): string {
  return value === null ? '–' : String(value >= 1_000 ? Math.round(value) : Number(value.toPrecision(3)))
}
