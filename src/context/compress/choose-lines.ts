// Chooses the most informative lines of a text, within a number of lines and characters: lines with a signal of
// failure, rare kinds of lines, lines whose numbers are unusual for their kind or family, both ends, and the outline of
// an indented text. Lines of one family compete with each other, so frequent lines do not crowd out rare ones. An error
// is shown with its context: the line above that it stands under, the lines below it, the first and last frames of its
// stack, and the causes named there.
import { lineFamily } from './line-families.ts'
import { cutBothEnds } from './cut-lines.ts'
import { type LineKinds, findLineKinds } from './line-kinds.ts'
import { stripLinePrefix } from './line-prefix.ts'
import { findOddLines } from './odd-lines.ts'
import { CAUSE, FRAME, isTroubleSignal, type TroubleSignal, findSignal } from './signals.ts'

/** 130 with the footer and the line that counts lines of progress. */
export const LINES_MAX = 128
const LINE_CHARS_MAX = 400
/** The most characters shown; of a text full of trouble at most this share. */
export const CHARS_MAX = 12_000
const TROUBLED_SHARE = 0.66
/**
 * A text up to this length in which more than that share is trouble stays whole: each of its lines is a separate error.
 */
const WHOLE_CHARS_MAX = 16_384
/** If more than this share of the lines has a signal, each signal counts for less. */
const TROUBLED_LINES = 0.3
const HEAD_LINES = 3
const TAIL_LINES = 5
const BEST_MAX = 60
/** If there is room left: the best lines with two lines around them, and this many lines of both ends. */
const WITH_CONTEXT = 10
const FILL_LINES = 10
/** The share of the room for the best lines, before their context is added. */
const FIRST_SHARE = 0.65
/** Frames at each end of a long stack trace, and frames of a short one. */
const FRAME_ENDS = 6
const FRAMES_WHOLE = 14
const STACK_LINES_MAX = 400
const OWN_FRAMES = 3
/** A file with a line number. Some programs print it below the name of the function. */
const PLACE = /[^\s():]\.\w{1,8}(?::|", line )\d/
const PLACE_ONLY =
  /^\s{1,80}(?:at |in )?(?:[A-Za-z]:)?[^\s():]{1,300}:\d{1,7}(?::\d{1,7})?(?: \+0x[\da-f]{1,16})?\s{0,4}$/
const FIRST_FRAME = /\sat \S.{0,200}:\d{1,7}\)?\s{0,4}$/
const OF_LIBRARY =
  /\/(?:rustc|usr|opt|go\/src|go\/pkg|\.cargo|\.gem|gems|vendor|node_modules|site-packages|dist-packages)\/|\bnode:|<frozen /
/**
 * Up to this many findings of different families, from this score on, are shown with their blocks, each of at most this
 * many lines.
 */
const BLOCKS_MAX = 8
const BLOCK_SCORE_MIN = 1.2
const BLOCK_LINES_MAX = 12
/** How many lines above a line its header is searched for. */
const HEADER_REACH = 60
/** If there are more kinds than this, only this many are judged, at equal distances. */
const JUDGED_KINDS_MAX = 20_000
/** If the share of different lines is below this, the only line of a kind stands out. */
const REPETITIVE = 0.35
const COMMON_KINDS = 12
/** The score that a grave signal adds. */
const GRAVE_SCORE = 0.6
/** How much less each further line of a family counts. */
const FAMILY_FADE = 0.15
const OUTLINE_LINES_MAX = 70
/** The characters that the mark of a gap takes. */
const GAP_CHARS = 22

/** `numberOf`: the number of a line in the original, counted from 1. */
export type LineNumbering = (line: number) => number

export function chooseLines(text: string, charsMax: number, numberOf: LineNumbering = (line) => line + 1): string {
  const kinds = findLineKinds(text)
  const bodies = stripLinePrefix(kinds)
  const judged = judgeKinds(kinds, bodies)
  if (text.length <= WHOLE_CHARS_MAX && judged.strongChars > text.length * TROUBLED_SHARE) return text
  const choice = new LineChoice(kinds, roomFor(judged, text.length, charsMax))
  const ends = [judged.firstStrong, judged.lastStrong].filter((line) => line >= 0)
  for (const line of ends) takeWithHeader(bodies, choice, line)
  for (let line = 0; line < HEAD_LINES; line++) choice.takeNew(line)
  for (let i = 1; i <= TAIL_LINES; i++) choice.takeNew(kinds.count - i)
  takeGapsOfTools(text, kinds, choice)
  // The most informative lines are taken before the context of each of them.
  for (const { line } of judged.best.slice(0, BEST_MAX)) if (choice.isNearlyFull || !choice.take(line)) break
  for (const line of ends) takeBlock(bodies, choice, line)
  for (const line of bestOfFamilies(judged)) takeBlock(bodies, choice, line)
  takeFramePlaces(bodies, choice)
  const levels = judged.isRepetitive ? [] : linesByIndent(bodies)
  takeOutline(levels.slice(0, 2), choice, OUTLINE_LINES_MAX)
  const common = commonKinds(kinds)
  for (const kind of common.slice(0, COMMON_KINDS / 2)) choice.take(kinds.first[kind] ?? 0)
  for (const { line, strong } of judged.best.slice(0, BEST_MAX)) {
    if (strong) takeAround(bodies, choice, line)
    else takeWithHeader(bodies, choice, line)
  }
  takeMoreSignals(judged, kinds, choice)
  for (const kind of common) choice.take(kinds.first[kind] ?? 0)
  takeUnseenFamilies(judged, choice)
  takeFramePlaces(bodies, choice)
  takeOutline(levels.slice(0, 3), choice, LINES_MAX)
  for (const { line } of judged.best.slice(0, WITH_CONTEXT))
    for (const near of [line - 1, line + 1, line - 2, line + 2]) choice.takeNew(near)
  for (let line = 0; line < FILL_LINES; line++) if (!choice.takeNew(line)) break
  for (let i = 1; i <= FILL_LINES; i++) if (!choice.takeNew(kinds.count - i)) break
  return renderLines(kinds, choice, numberOf)
}

/** If much is wrong, more is shown: one line of each kind with a signal, and half as much around them. */
function roomFor({ strongChars }: JudgedLines, chars: number, charsMax: number): number {
  return Math.max(charsMax, Math.min(CHARS_MAX, chars * TROUBLED_SHARE, strongChars * 1.5))
}

/** A set of chosen lines, bounded by a number of lines and of characters. */
class LineChoice {
  readonly #taken: Uint8Array
  readonly #kinds: LineKinds
  readonly #said = new Set<string>()
  #lines = 0
  #charsLeft: number
  readonly #charsMax: number

  constructor(kinds: LineKinds, charsMax: number) {
    this.#taken = new Uint8Array(kinds.count)
    this.#kinds = kinds
    this.#charsLeft = charsMax
    this.#charsMax = charsMax
  }

  has(line: number): boolean {
    return this.#taken[line] === 1
  }

  get isFull(): boolean {
    return this.#lines >= LINES_MAX || this.#charsLeft < GAP_CHARS
  }

  get isNearlyFull(): boolean {
    return this.#lines >= LINES_MAX * FIRST_SHARE || this.#charsLeft < this.#charsMax * (1 - FIRST_SHARE)
  }

  /** False if there is no room for the line. */
  take(line: number): boolean {
    if (line < 0 || line >= this.#taken.length || this.has(line)) return true
    const chars = Math.min(this.#kinds.at(line).length, LINE_CHARS_MAX) + 1 + (this.has(line - 1) ? 0 : GAP_CHARS)
    if (this.#lines >= LINES_MAX || chars > this.#charsLeft) return false
    this.#taken[line] = 1
    this.#lines += 1
    this.#charsLeft -= chars
    this.#said.add(this.#kinds.at(line))
    return true
  }

  /** Takes a line unless an identical line is taken already. */
  takeNew(line: number): boolean {
    return this.#said.has(this.#kinds.at(line)) || this.take(line)
  }
}

type Candidate = { readonly line: number; readonly score: number; readonly strong: boolean; readonly family: number }

type JudgedLines = {
  /** The first lines of all kinds, in their order. */
  readonly found: readonly KindSignal[]
  /** The most informative first. */
  readonly best: readonly Candidate[]
  readonly firstStrong: number
  readonly lastStrong: number
  /** The length of the first lines of all kinds with a signal. */
  readonly strongChars: number
  /** Few kinds make up most of the lines. */
  readonly isRepetitive: boolean
}

type KindSignal = {
  readonly kind: number
  readonly line: number
  readonly said: string
  readonly signal: TroubleSignal
  readonly family: number
}

/** Judges each kind by its first line. If most lines begin with the same prefix, `bodies` are the lines without it. */
function judgeKinds(kinds: LineKinds, bodies: LineKinds): JudgedLines {
  const { count, counts, last } = kinds
  const found = signalsOf(kinds)
  const strong = found.filter(({ signal }) => isTroubleSignal(signal))
  const strongLines = strong.reduce((sum, { kind }) => sum + (counts[kind] ?? 0), 0)
  const isRepetitive = counts.length / count < REPETITIVE
  const best = scoreKinds(bodies, found, { isRepetitive, isTroubled: strongLines > count * TROUBLED_LINES })
  for (const { line, score } of findOddLines(kinds)) best.push({ line, score, strong: false, family: -line })
  return {
    found,
    best: rankByFamily(best),
    firstStrong: strong[0]?.line ?? -1,
    lastStrong: strong.reduce((latest, { kind }) => Math.max(latest, last[kind] ?? 0), -1),
    strongChars: strong.reduce((sum, { said }) => sum + Math.min(said.length, LINE_CHARS_MAX) + 1, 0),
    isRepetitive,
  }
}

/** Kinds that are not empty, in the order of their first lines. */
function signalsOf({ counts, first, at }: LineKinds): readonly KindSignal[] {
  const found: KindSignal[] = []
  const step = Math.max(1, Math.ceil(counts.length / JUDGED_KINDS_MAX))
  for (let kind = 0; kind < counts.length; kind += step) {
    const line = first[kind] ?? 0
    const said = at(line)
    if (said.trim() !== '') found.push({ kind, line, said, signal: findSignal(said), family: lineFamily(said) })
  }
  return found
}

type TextTraits = { readonly isRepetitive: boolean; readonly isTroubled: boolean }

/** A signal that is everywhere counts for little, and so does a kind with many lines. */
function scoreKinds(bodies: LineKinds, found: readonly KindSignal[], whole: TextTraits): Candidate[] {
  const { count, counts, last } = bodies
  const rareMax = rareCountOf(count)
  const beginsOddly = oddBeginningTest(bodies, Math.max(1, Math.floor(count / 200)))
  const families = countFamilies(found, counts)
  const hasFamilies = families.size / count < REPETITIVE
  const best: Candidate[] = []
  const informationOf = (times: number): number => Math.log2(count / times) / Math.log2(count + 1)
  for (const { kind, line, signal, family } of found) {
    const times = counts[kind] ?? 1
    const relatives = families.get(family) ?? times
    const information = (informationOf(times) + informationOf(relatives)) / 2
    const strong = isTroubleSignal(signal)
    const weight = strong ? (whole.isTroubled ? 1.1 : 2.2) : signal === 'weak' ? 0.9 : 0
    let score = weight * (0.3 + 0.7 * information)
    const standsOut = whole.isRepetitive || (hasFamilies && relatives <= rareMax)
    if (times <= rareMax) score += information * (standsOut ? 1.5 : 0.35)
    if (times <= rareMax && beginsOddly(line)) score += 1.3
    if (FRAME.test(bodies.at(line).slice(0, LINE_CHARS_MAX))) score -= 1.2
    if (signal === 'grave') score += GRAVE_SCORE
    if (score > 0.5) best.push({ line, score, strong, family })
    if (times > 1 && times <= 3 && score > 1)
      best.push({ line: last[kind] ?? line, score: score - 0.1, strong, family })
  }
  return best
}

/** How many lines each family has. */
function countFamilies(found: readonly KindSignal[], counts: readonly number[]): ReadonlyMap<number, number> {
  const families = new Map<number, number>()
  for (const { kind, family } of found) families.set(family, (families.get(family) ?? 0) + (counts[kind] ?? 1))
  return families
}

/** The best first. The second line of a family counts less than the first, and each further one less again. */
function rankByFamily(candidates: Candidate[]): readonly Candidate[] {
  const byScore = (a: Candidate, b: Candidate): number => b.score - a.score || a.line - b.line
  const ranks = new Map<number, number>()
  const ranked = candidates.sort(byScore).map((candidate) => {
    const rank = ranks.get(candidate.family) ?? 0
    ranks.set(candidate.family, rank + 1)
    return { ...candidate, score: candidate.score / (1 + FAMILY_FADE * rank) }
  })
  return ranked.sort(byScore)
}

/** A kind is rare if it has this many lines or fewer. */
function rareCountOf(count: number): number {
  return Math.max(1, Math.floor(count / 75))
}

/** Whether a line begins as few others do. If many lines begin oddly, that means nothing. */
function oddBeginningTest({ count, alikeAtStart }: LineKinds, oddMax: number): (line: number) => boolean {
  let odd = 0
  for (let line = 0; line < count; line++) if (alikeAtStart(line) <= oddMax) odd += 1
  return odd > Math.max(8, count * 0.06) ? () => false : (line) => alikeAtStart(line) <= oddMax
}

function takeWithHeader(kinds: LineKinds, choice: LineChoice, line: number): boolean {
  if (!choice.take(line)) return false
  const above = headerOf(kinds, line, indentOf(kinds.at(line)))
  if (above >= 0) choice.take(above)
  return true
}

/** Takes an important line with its context. */
function takeAround(kinds: LineKinds, choice: LineChoice, line: number): void {
  if (!takeWithHeader(kinds, choice, line)) return
  const { count, at } = kinds
  const indent = indentOf(at(line))
  let end = line + 1
  while (end < count && end < line + STACK_LINES_MAX && belongsToError(at(end), indent)) end += 1
  // Python names the error after its frames, and a chain of errors goes on after an empty line.
  if (end < count && end > line + 1 && CAUSE.test(at(end))) choice.take(end)
  if (isChained(kinds, end)) for (let next = end; next < end + 3; next++) choice.take(next)
  const frames = end - line - 1
  const head = frames > FRAMES_WHOLE ? FRAME_ENDS : frames
  for (let i = 1; i <= head; i++) choice.take(line + i)
  if (frames > FRAMES_WHOLE) for (let i = 1; i <= FRAME_ENDS; i++) choice.take(end - i)
  if (frames > FRAMES_WHOLE) takeOwnFrames(kinds, choice, line + 1, end)
  for (let frame = line + 1; frame < end; frame++) if (CAUSE.test(at(frame))) choice.take(frame)
}

/**
 * The innermost frames that are not in a file of a library, with the line above if the file stands on a line of its
 * own.
 */
function takeOwnFrames({ at }: LineKinds, choice: LineChoice, from: number, end: number): void {
  for (let [line, own] = [from, 0]; line < end && own < OWN_FRAMES; line++) {
    const said = at(line)
    if (!PLACE.test(said) || OF_LIBRARY.test(said)) continue
    if (PLACE_ONLY.test(said)) choice.take(line - 1)
    choice.take(line)
    own += 1
  }
}

/** Below a chosen function line, takes the file line of its frame; below a chosen cause, takes the first frame. */
function takeFramePlaces({ count, at }: LineKinds, choice: LineChoice): void {
  for (let line = 1; line < count; line++) {
    if (!choice.has(line - 1) || choice.has(line)) continue
    const [said, above] = [at(line), at(line - 1)]
    const isPlace = PLACE_ONLY.test(said) && indentOf(said) > indentOf(above)
    if (isPlace || (above.includes('Caused by') && FIRST_FRAME.test(said))) choice.take(line)
  }
}

/** The best lines of different families. */
function bestOfFamilies({ best }: JudgedLines): readonly number[] {
  const lines = new Map<number, number>()
  for (const { line, family, score } of best) {
    if (lines.size >= BLOCKS_MAX || score < BLOCK_SCORE_MIN) break
    if (!lines.has(family)) lines.set(family, line)
  }
  return [...lines.values()]
}

/**
 * Takes a finding with its block: the lines below it up to an empty line, to the next finding of its family, or to a
 * common line. Indented lines belong to the line that they stand under.
 */
function takeBlock(kinds: LineKinds, choice: LineChoice, line: number): void {
  takeAround(kinds, choice, line)
  const { count, at, kindOf, counts } = kinds
  const [indent, family, rareMax] = [indentOf(at(line)), lineFamily(at(line)), rareCountOf(count)]
  for (let next = line + 1; next < count && next <= line + BLOCK_LINES_MAX; next++) {
    const said = at(next)
    if (said.trim() === '') return
    const isDeeper = indentOf(said) > indent
    if (!isDeeper && ((counts[kindOf[next] ?? 0] ?? 0) > rareMax || lineFamily(said) === family)) return
    if (!choice.take(next)) return
  }
}

/** The nearest line above with less indentation; for a line without indentation, the first line after an empty one. */
function headerOf({ at }: LineKinds, line: number, indent: number): number {
  for (let above = line - 1; above >= 0 && above > line - HEADER_REACH; above--) {
    const isEmpty = at(above).trim() === ''
    if (isEmpty && indent === 0) return above + 1
    if (!isEmpty && indentOf(at(above)) < indent) return above
  }
  return -1
}

const QUOTED_SOURCE = /^\s{0,8}(?:\d{1,7} )?\s{0,8}[|^~]/

function belongsToError(said: string, indent: number): boolean {
  if (said.trim() === '') return false
  return FRAME.test(said) || indentOf(said) > indent || QUOTED_SOURCE.test(said)
}

function isChained({ count, at }: LineKinds, end: number): boolean {
  return end + 1 < count && at(end).trim() === '' && /^(?:The above exception|During handling)/.test(at(end + 1))
}

const BOX_FROM = 0x2500
const BOX_TO = 0x2580

/** The number of blanks and signs of drawn trees at the beginning of a line. */
function indentOf(said: string): number {
  let at = 0
  for (; at < said.length; at++) {
    const code = said.charCodeAt(at)
    if (code !== 32 && code !== 9 && (code < BOX_FROM || code >= BOX_TO)) break
  }
  return at
}

/** A mark that a tool leaves in its output where it left something out, with how to get it. */
const GAP_OF_TOOL = /^\[.{1,60} left out\b/

function takeGapsOfTools(text: string, { count, at }: LineKinds, choice: LineChoice): void {
  if (!text.includes(' left out')) return
  for (let line = 0; line < count; line++) if (GAP_OF_TOOL.test(at(line))) choice.take(line)
}

/** The lines that are not empty, grouped by indentation, the least first. */
function linesByIndent({ count, at }: LineKinds): readonly (readonly number[])[] {
  const levels = new Map<number, number[]>()
  for (let line = 0; line < count; line++) {
    const said = at(line)
    if (said.trim() === '') continue
    const indent = indentOf(said)
    const level = levels.get(indent)
    if (level === undefined) levels.set(indent, [line])
    else level.push(line)
  }
  return [...levels].toSorted(([a], [b]) => a - b).map(([, lines]) => lines)
}

function takeOutline(levels: readonly (readonly number[])[], choice: LineChoice, most: number): void {
  let sum = 0
  for (const lines of levels) {
    sum += lines.length
    if (sum > most && most < LINES_MAX) return
    for (const line of lines) if (!choice.takeNew(line)) return
  }
}

const MORE_LOOKED_AT = 4_000
const MORE_MAX = 40

/** More lines of kinds with a signal: two from the beginning for each one from the end. */
function takeMoreSignals({ best }: JudgedLines, { count, kindOf }: LineKinds, choice: LineChoice): void {
  const wanted = new Set(best.filter(({ strong }) => strong).map(({ line }) => kindOf[line] ?? 0))
  if (wanted.size === 0 || choice.isFull) return
  const more: number[] = []
  for (let line = 0; line < count && more.length < MORE_LOOKED_AT; line++)
    if (!choice.has(line) && wanted.has(kindOf[line] ?? 0)) more.push(line)
  let [low, high] = [0, more.length - 1]
  for (let turn = 0; low <= high && turn < MORE_MAX; turn++) {
    const line = turn % 3 === 2 ? more[high--] : more[low++]
    if (!choice.takeNew(line ?? -1)) return
  }
}

/** Takes one line of each family that is not shown yet, the smallest families first. */
function takeUnseenFamilies({ found }: JudgedLines, choice: LineChoice): void {
  if (choice.isFull) return
  const seen = new Set(found.filter(({ line }) => choice.has(line)).map(({ family }) => family))
  const sizes = new Map<number, number>()
  for (const { family } of found) sizes.set(family, (sizes.get(family) ?? 0) + 1)
  const unseen = found.filter(({ family }) => !seen.has(family))
  for (const { line, family } of unseen.sort((a, b) => (sizes.get(a.family) ?? 0) - (sizes.get(b.family) ?? 0))) {
    if (seen.has(family)) continue
    seen.add(family)
    if (!choice.take(line)) return
  }
}

function commonKinds({ counts, count }: LineKinds): readonly number[] {
  const rareMax = rareCountOf(count)
  const common: number[] = []
  for (const [kind, times] of counts.entries()) if (times > rareMax) common.push(kind)
  return common.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0)).slice(0, COMMON_KINDS)
}

/** The chosen lines in their order. A gap is named at the end of the line before it. */
function renderLines(kinds: LineKinds, choice: LineChoice, numberOf: LineNumbering): string {
  const { count, at, kindOf, counts, first } = kinds
  const rareMax = rareCountOf(count)
  const shown: string[] = []
  const name = (from: number, to: number): void => {
    const [low, high] = [numberOf(from), numberOf(to)]
    const gap = low === high ? `[… line ${low}]` : `[… lines ${low}–${high}]`
    const before = shown.pop()
    shown.push(before === undefined ? gap : `${before} ${gap}`)
  }
  let from = -1
  for (let line = 0; line < count; line++) {
    if (!choice.has(line)) {
      if (from < 0) from = line
      continue
    }
    if (from >= 0) name(from, line - 1)
    from = -1
    const kind = kindOf[line] ?? 0
    const times = counts[kind] ?? 1
    const isCounted = times > rareMax && times > 2 && first[kind] === line && /\w{3}/.test(at(line))
    shown.push(`${cutBothEnds(at(line), LINE_CHARS_MAX)}${isCounted ? ` (×${times} alike)` : ''}`)
  }
  if (from >= 0) name(from, count - 1)
  return shown.join('\n')
}
