// The row above the prompt: which model answers, in which mode and folder, how full the context is, what was spent, and
// what is still at work. Pure but for the branch, which is read from a file: no process is started for a drawing.
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { percentText } from '../../view/shown-text.ts'
import { clipToEnd, clipToWidth, widthOf } from '../present/terminal-text.ts'
import { oneLine } from '../../view/clean.ts'
import { usdOf } from '../../view/usd.ts'

/** A part of the row. Where not all parts fit, those with the lowest rank are left out first. */
export type StatusPart = { readonly text: string; readonly rank: number }

export type ChatStatus = {
  readonly model: string
  readonly mode: string
  readonly folder: string
  readonly home: string
  readonly branch: string | null
  /** Tokens of the context, and of the model's window. Null if one of them is unknown. */
  readonly context: { readonly tokens: number; readonly window: number } | null
  /** In millionths of a dollar, with all children. */
  readonly spent: number
  /** In dollars. Null: no limit. */
  readonly limitUsd: number | null
  readonly children: number
  /** Commands in the background. */
  readonly background: number
  readonly queued: number
}

/** What the session does now is more important than where it is. */
export const DOING_RANK = 10
const FOLDER_COLUMNS = 32

export function statusParts(status: ChatStatus): readonly StatusPart[] {
  const { model, mode, context, spent, limitUsd, children, background, queued } = status
  const money = spentText(spent, limitUsd)
  return [
    { text: clipToWidth(oneLine(model), FOLDER_COLUMNS), rank: 2 },
    { text: mode, rank: 8 },
    { text: placeText(status), rank: 1 },
    ...(context === null ? [] : [{ text: `ctx ${percentText(context.tokens, context.window)}`, rank: 4 }]),
    ...(money === null ? [] : [{ text: money, rank: 5 }]),
    ...(children === 0 ? [] : [{ text: children === 1 ? '1 agent works' : `${children} agents work`, rank: 6 }]),
    ...(background === 0 ? [] : [{ text: `${background} in the background`, rank: 6 }]),
    ...(queued === 0 ? [] : [{ text: `${queued} queued`, rank: 7 }]),
  ]
}

/** The parts in their order, as many as fit. The most important one is cut if even it is too long. */
export function fitStatus(parts: readonly StatusPart[], columns: number): string {
  let kept = parts.filter(({ text }) => text !== '')
  while (kept.length > 1 && widthOf(joinParts(kept)) > columns) {
    const least = Math.min(...kept.map(({ rank }) => rank))
    const gone = kept.findLastIndex(({ rank }) => rank === least)
    kept = kept.filter((_, at) => at !== gone)
  }
  return clipToWidth(joinParts(kept), columns)
}

function joinParts(parts: readonly StatusPart[]): string {
  return parts.map(({ text }) => text).join(' · ')
}

function placeText({ folder, home, branch }: ChatStatus): string {
  const isBelow = home !== '' && home !== '/' && (folder === home || folder.startsWith(`${home}/`))
  const where = clipToEnd(oneLine(isBelow ? `~${folder.slice(home.length)}` : folder, 400), FOLDER_COLUMNS)
  return branch === null ? where : `${where} (${clipToWidth(oneLine(branch), FOLDER_COLUMNS)})`
}

/** Null: nothing was spent, and there is no limit. The limit is not named once money beyond it was allowed. */
function spentText(spent: number, limitUsd: number | null): string | null {
  const isWithin = limitUsd !== null && usdOf(spent) <= limitUsd
  if (spent === 0 && !isWithin) return null
  const text = dollarsText(usdOf(spent))
  return isWithin ? `${text} of ${dollarsText(limitUsd)}` : text
}

/** Two digits after the point, or four for less than ten cents, so that small runs do not all cost nothing. */
function dollarsText(usd: number): string {
  const digits = usd > 0 && usd < 0.1 ? 4 : 2
  return `$${usd.toFixed(digits).replace(/\.00$/, '')}`
}

/** The longest HEAD that is read. Git's own are shorter. */
const HEAD_CHARS_MAX = 1_000

/** The branch that this folder is on, or the beginning of the commit. Null without Git. */
export function readBranch(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const head = readHead(join(at, '.git'))
    if (head !== null) return branchOf(head)
    if (at === dirname(at)) return null
  }
}

/** In a worktree `.git` is a file that names the folder. */
function readHead(git: string): string | null {
  try {
    const kind = statSync(git)
    const [, elsewhere] = kind.isFile() ? (/^gitdir: (.+)/.exec(readShort(git)) ?? []) : []
    if (!kind.isDirectory() && elsewhere === undefined) return null
    return readShort(join(elsewhere === undefined ? git : resolve(dirname(git), elsewhere), 'HEAD'))
  } catch {
    return null
  }
}

function readShort(file: string): string {
  return statSync(file).isFile() ? readFileSync(file, 'utf8').slice(0, HEAD_CHARS_MAX) : ''
}

function branchOf(head: string): string | null {
  const [, name] = /^ref: (?:refs\/heads\/)?(.+)/.exec(head) ?? []
  if (name !== undefined) return name.trim()
  return /^[0-9a-f]{40,64}\s*$/.test(head) ? head.slice(0, 7) : null
}
