// Lays out a graph in layers from left to right: each link leads to a later layer, except links that go back. A link
// that passes layers gets a point in each, so that it runs between the nodes. Pure.
export type GraphPoint = { readonly x: number; readonly y: number }
export type GraphSize = { readonly w: number; readonly h: number }
export type GraphLink = { readonly from: string; readonly to: string }
type LayerOptions = {
  readonly extent: (name: string) => GraphSize
  readonly layerGap: number
  readonly nodeGap: number
}
export type LayeredGraph = {
  readonly at: ReadonlyMap<string, GraphPoint>
  /** For each link, the points between its ends. */
  readonly through: readonly (readonly GraphPoint[])[]
  readonly width: number
  readonly height: number
}

/** Sweeps that order each layer, and then move it, by the neighbouring layer. */
const SWEEPS = 8
/** The room that a passing link takes in a layer. */
const PASSING = 12

type Spot = { readonly key: string; readonly name: string | null; readonly size: number; y: number }

/** `names`: the first node comes first and the last one last. */
export function layOutGraph(
  names: readonly string[],
  links: readonly GraphLink[],
  options: LayerOptions,
): LayeredGraph {
  const forward = turnBackLinks(names, links)
  const ranks = rankNodes(names, forward)
  const { layers, joined, passed } = createSpots(names, forward, ranks, options)
  for (let i = 0; i < SWEEPS; i++) orderLayers(i % 2 === 0 ? layers : layers.toReversed(), joined)
  for (const layer of layers) stackLayer(layer, options.nodeGap)
  for (let i = 0; i < SWEEPS; i++)
    for (const layer of i % 2 === 0 ? layers : layers.toReversed()) moveLayer(layer, joined, options.nodeGap)
  return toLayeredGraph(layers, passed, links, forward, options)
}

/** Reverses links that lead back to a node on their own path. A link from a node to itself is left alone. */
function turnBackLinks(names: readonly string[], links: readonly GraphLink[]): readonly GraphLink[] {
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

/**
 * A node's layer is its longest distance from the start. The last node gets a layer of its own, after all dead ends.
 */
function rankNodes(names: readonly string[], links: readonly GraphLink[]): ReadonlyMap<string, number> {
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
  /** For each link, its spots in the layers that it passes. */
  readonly passed: readonly (readonly Spot[])[]
}

function createSpots(
  names: readonly string[],
  links: readonly GraphLink[],
  ranks: ReadonlyMap<string, number>,
  options: LayerOptions,
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

/** Sorts by the mean position of the connected spots in the previous layer. */
function orderLayers(layers: readonly Spot[][], joined: Spots['joined']): void {
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

/** Stacks the spots vertically, centred at 0. */
function stackLayer(layer: readonly Spot[], gap: number): void {
  const whole = layer.reduce((sum, { size }) => sum + size + gap, -gap)
  let y = -whole / 2
  for (const spot of layer) {
    spot.y = y + spot.size / 2
    y += spot.size + gap
  }
}

/** Moves each spot towards its neighbours, keeping the order and the gap. */
function moveLayer(layer: readonly Spot[], joined: Spots['joined'], gap: number): void {
  const wishes = layer.map((spot) => {
    const others = (joined.get(spot.key) ?? []).map(({ y }) => y)
    return others.length === 0 ? spot.y : mean(others)
  })
  let free = Number.NEGATIVE_INFINITY
  for (const [i, spot] of layer.entries()) {
    spot.y = Math.max(wishes[i] ?? 0, free + spot.size / 2)
    free = spot.y + spot.size / 2 + gap
  }
  // Spots are only ever pushed down, so the whole layer moves back up by the mean shift.
  const pushed = mean(layer.map(({ y }, i) => y - (wishes[i] ?? 0)))
  for (const spot of layer) spot.y -= pushed
}

function toLayeredGraph(
  layers: readonly Spot[][],
  passed: Spots['passed'],
  links: readonly GraphLink[],
  forward: readonly GraphLink[],
  options: LayerOptions,
): LayeredGraph {
  const top = Math.min(0, ...layers.flat().map(({ y, size }) => y - size / 2))
  const at = new Map<string, GraphPoint>()
  const places = new Map<Spot, GraphPoint>()
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
