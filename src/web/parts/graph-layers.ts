// A graph in layers, from left to right: every line leads to a later layer, but for those that go back. A line that passes layers has a
// point in each of them, so that it runs between the nodes. Pure.
export type Point = { readonly x: number; readonly y: number }
export type Size = { readonly w: number; readonly h: number }
export type Link = { readonly from: string; readonly to: string }
type Options = {
  readonly extent: (name: string) => Size
  readonly layerGap: number
  readonly nodeGap: number
}
export type Layered = {
  readonly at: ReadonlyMap<string, Point>
  /** Of each line, the points between its ends. */
  readonly through: readonly (readonly Point[])[]
  readonly width: number
  readonly height: number
}

/** Sweeps in which each layer is ordered, and then moved, by the layer beside it. */
const SWEEPS = 8
/** A line that passes a layer takes so much room there. */
const PASSING = 12

type Spot = { readonly key: string; readonly name: string | null; readonly size: number; y: number }

/** `names` has the first node first and the last one last. */
export function layersOf(names: readonly string[], links: readonly Link[], options: Options): Layered {
  const forward = withoutRings(names, links)
  const ranks = ranksOf(names, forward)
  const { layers, joined, passed } = spotsOf(names, forward, ranks, options)
  for (let i = 0; i < SWEEPS; i++) order(i % 2 === 0 ? layers : layers.toReversed(), joined)
  for (const layer of layers) stack(layer, options.nodeGap)
  for (let i = 0; i < SWEEPS; i++)
    for (const layer of i % 2 === 0 ? layers : layers.toReversed()) move(layer, joined, options.nodeGap)
  return placed(layers, passed, links, forward, options)
}

/** Lines that lead back to a node on the way to them are turned round. A line from a node to itself is none here. */
function withoutRings(names: readonly string[], links: readonly Link[]): readonly Link[] {
  const onWay = new Set<string>()
  const done = new Set<string>()
  const back = new Set<number>()
  const visit = (name: string): void => {
    onWay.add(name)
    for (const [i, { from, to }] of links.entries()) {
      if (from !== name) continue
      if (onWay.has(to)) back.add(i)
      else if (!done.has(to)) visit(to)
    }
    onWay.delete(name)
    done.add(name)
  }
  for (const name of names) if (!done.has(name)) visit(name)
  return links.map(({ from, to }, i) => (back.has(i) ? { from: to, to: from } : { from, to }))
}

/** The longest way from the beginning. What leads nowhere ends before the last node, which stands alone. */
function ranksOf(names: readonly string[], links: readonly Link[]): ReadonlyMap<string, number> {
  const ranks = new Map(names.map((name) => [name, 0]))
  for (let i = 0; i < names.length; i++) {
    for (const { from, to } of links)
      if (from !== to) ranks.set(to, Math.max(ranks.get(to) ?? 0, (ranks.get(from) ?? 0) + 1))
  }
  const last = names.at(-1)
  const others = names.filter((name) => name !== last).map((name) => ranks.get(name) ?? 0)
  if (last !== undefined) ranks.set(last, Math.max(ranks.get(last) ?? 0, 1 + Math.max(0, ...others)))
  return ranks
}

type Spots = {
  readonly layers: readonly Spot[][]
  readonly joined: ReadonlyMap<string, readonly Spot[]>
  /** Of each line, its places in the layers that it passes. */
  readonly passed: readonly (readonly Spot[])[]
}

function spotsOf(
  names: readonly string[],
  links: readonly Link[],
  ranks: ReadonlyMap<string, number>,
  options: Options,
): Spots {
  const count = Math.max(0, ...ranks.values()) + 1
  const layers: Spot[][] = Array.from({ length: count }, () => [])
  const nodes = new Map<string, Spot>()
  const joined = new Map<string, Spot[]>()
  for (const name of names) {
    const spot = { key: `node ${name}`, name, size: options.extent(name).h, y: 0 }
    nodes.set(name, spot)
    layers[ranks.get(name) ?? 0]?.push(spot)
  }
  const join = (a: Spot | undefined, b: Spot | undefined): void => {
    if (!a || !b) return
    joined.set(a.key, [...(joined.get(a.key) ?? []), b])
    joined.set(b.key, [...(joined.get(b.key) ?? []), a])
  }
  const passed = links.map(({ from, to }, i) => {
    const between = layers.slice((ranks.get(from) ?? 0) + 1, ranks.get(to) ?? 0).map((layer, k) => {
      const spot = { key: `line ${i} ${k}`, name: null, size: PASSING, y: 0 }
      layer.push(spot)
      return spot
    })
    const all = [nodes.get(from), ...between, nodes.get(to)]
    for (const [k, spot] of all.slice(1).entries()) join(all[k], spot)
    return between
  })
  return { layers, joined, passed }
}

/** By the middle of what each is connected to in the layer before it. */
function order(layers: readonly Spot[][], joined: Spots['joined']): void {
  for (const [i, layer] of layers.entries()) {
    const before = new Map((layers[i - 1] ?? []).map(({ key }, place) => [key, place]))
    const wish = new Map(
      layer.map((spot, place) => {
        const places = (joined.get(spot.key) ?? []).flatMap(({ key }) => before.get(key) ?? [])
        return [spot.key, places.length === 0 ? place : mean(places)] as const
      }),
    )
    layer.sort((a, b) => (wish.get(a.key) ?? 0) - (wish.get(b.key) ?? 0))
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}

/** One below the other, around 0. */
function stack(layer: readonly Spot[], gap: number): void {
  const whole = layer.reduce((sum, { size }) => sum + size + gap, -gap)
  let y = -whole / 2
  for (const spot of layer) {
    spot.y = y + spot.size / 2
    y += spot.size + gap
  }
}

/** Each towards what it is connected to, in the same order and never closer than the gap. */
function move(layer: readonly Spot[], joined: Spots['joined'], gap: number): void {
  const wishes = layer.map((spot) => {
    const others = (joined.get(spot.key) ?? []).map(({ y }) => y)
    return others.length === 0 ? spot.y : mean(others)
  })
  let free = Number.NEGATIVE_INFINITY
  for (const [i, spot] of layer.entries()) {
    spot.y = Math.max(wishes[i] ?? 0, free + spot.size / 2)
    free = spot.y + spot.size / 2 + gap
  }
  // Those that were pushed aside are pushed one way only: the layer as a whole goes back by half of it.
  const pushed = mean(layer.map(({ y }, i) => y - (wishes[i] ?? 0)))
  for (const spot of layer) spot.y -= pushed
}

function placed(
  layers: readonly Spot[][],
  passed: Spots['passed'],
  links: readonly Link[],
  forward: readonly Link[],
  options: Options,
): Layered {
  const top = Math.min(0, ...layers.flat().map(({ y, size }) => y - size / 2))
  const at = new Map<string, Point>()
  const places = new Map<Spot, Point>()
  let [x, height] = [0, 0]
  for (const layer of layers) {
    const wide = Math.max(0, ...layer.map(({ name }) => (name === null ? 0 : options.extent(name).w)))
    for (const spot of layer) {
      const point = { x: x + wide / 2, y: spot.y - top }
      places.set(spot, point)
      if (spot.name !== null) at.set(spot.name, point)
      height = Math.max(height, point.y + spot.size / 2)
    }
    x += wide + options.layerGap
  }
  const through = passed.map((spots, i) => {
    const points = spots.flatMap((spot) => places.get(spot) ?? [])
    return forward[i]?.from === links[i]?.from ? points : points.toReversed()
  })
  return { at, through, width: Math.max(0, x - options.layerGap), height }
}
