#!/usr/bin/env python3
"""Holds the answers of spar's problems about graphs against `networkx`.

    pip install networkx
    cargo run -p spar-puzzles --example graph_problems -- 0 40 > problems.jsonl
    python3 scripts/check_graph_problems.py problems.jsonl

The graph is read from the question, so that what is said is what is checked. Where many answers are right, the one that spar tells is checked on the
graph, and its size or weight is held against the best there is. Prints how many problems of each family were held against it, and every difference.
"""
import argparse
import collections
import itertools
import json
import re

import networkx as nx
from networkx.algorithms import bipartite

TOLERANCE = 0.0006


def graph_of(text):
    directed = re.match(r"(An undirected|A directed) graph has the nodes 0 to (\d+)", text)
    graph = nx.DiGraph() if directed[1] == "A directed" else nx.Graph()
    graph.add_nodes_from(range(int(directed[2]) + 1))
    told = re.match(r"[^.]*? and the edges ([^.]*)\.", text)
    for one, other, weight in re.findall(r"(\d+)(?:->|-)(\d+)(?: \((\d+)\))?", told[1] if told else ""):
        graph.add_edge(int(one), int(other), weight=int(weight or 1))
    return graph


def asked_nodes(question):
    """The nodes that the question names, in their order."""
    end = question.rfind("Answer with") if "Answer with" in question else len(question)
    asked = question[question.index("."):end]
    return [int(it) for it in re.findall(r"node[s]? (\d+)", asked)] + [int(it) for it in re.findall(r"nodes \d+ and (\d+)", asked)]


def numbers(text):
    return [int(it) for it in re.findall(r"\d+", text)]


def pairs(text):
    found = numbers(text)
    return list(zip(found[::2], found[1::2]))


def by_set(graph, is_right):
    """The size of the smallest set of nodes that is right."""
    for size in range(len(graph) + 1):
        if any(is_right(set(nodes)) for nodes in itertools.combinations(graph, size)):
            return size
    return None


def is_search(graph, order, breadth):
    if breadth:
        # A search that takes neighbours in the order told visits in that order.
        place = {node: number for number, node in enumerate(order)}
        found = [order[0]] + [to for _, to in nx.bfs_edges(graph, order[0], sort_neighbors=lambda it: sorted(it, key=place.get))]
    else:
        place = {node: number for number, node in enumerate(order)}
        found = list(nx.dfs_preorder_nodes(graph, order[0], sort_neighbors=lambda it: sorted(it, key=place.get)))
    return found == order


def tour(graph):
    rest = list(graph)[1:]
    weight = lambda one, other: graph[one][other]["weight"]
    best = {(frozenset(), node): weight(0, node) for node in rest}
    for size in range(1, len(rest)):
        for done in itertools.combinations(rest, size):
            for last in set(rest) - set(done):
                done_set = frozenset(done)
                best[done_set, last] = min(best[done_set - {it}, it] + weight(it, last) for it in done)
    return min(best[frozenset(rest) - {last}, last] + weight(last, 0) for last in rest)


def is_covering(graph, nodes):
    return all(one in nodes or other in nodes for one, other in graph.edges)


def is_dominating(graph, nodes):
    return all(node in nodes or set(graph[node]) & nodes for node in graph)


def edge_set(edges):
    return {tuple(sorted(edge)) for edge in edges}


def by_distance(graph, best):
    far = nx.eccentricity(graph)
    return {node for node in graph if far[node] == best(far.values())}


NUMBERS = {
    "adamic_adar": lambda g, n: next(nx.adamic_adar_index(g, [(n[0], n[1])]))[2],
    "average_neighbor_degree": lambda g, n: nx.average_neighbor_degree(g)[n[0]],
    "betweenness": lambda g, n: nx.betweenness_centrality(g)[n[0]],
    "closeness": lambda g, n: nx.closeness_centrality(g)[n[0]],
    "clustering": lambda g, n: nx.clustering(g, n[0]),
    "components": lambda g, n: nx.number_connected_components(g),
    "degree": lambda g, n: g.degree(n[0]),
    "degree_centrality": lambda g, n: nx.degree_centrality(g)[n[0]],
    "density": lambda g, n: nx.density(g),
    "diameter": lambda g, n: nx.diameter(g),
    "edge_number": lambda g, n: g.number_of_edges(),
    "global_efficiency": lambda g, n: nx.global_efficiency(g),
    "harmonic": lambda g, n: nx.harmonic_centrality(g)[n[0]],
    "jaccard": lambda g, n: next(nx.jaccard_coefficient(g, [(n[0], n[1])]))[2],
    "local_connectivity": lambda g, n: nx.node_connectivity(g, n[0], n[1]),
    "matching_weight": lambda g, n: sum(g[a][b]["weight"] for a, b in nx.max_weight_matching(g)),
    "maximum_flow": lambda g, n: nx.maximum_flow_value(g, n[0], n[1], capacity="weight"),
    "radius": lambda g, n: nx.radius(g),
    "resource_allocation": lambda g, n: next(nx.resource_allocation_index(g, [(n[0], n[1])]))[2],
    "strong_components": lambda g, n: nx.number_strongly_connected_components(g),
    "traveling_salesman": lambda g, n: tour(g),
    "triangles": lambda g, n: sum(nx.triangles(g).values()) // 3,
    "wiener_index": lambda g, n: nx.wiener_index(g),
}

TRUTHS = {
    "edge_existence": lambda g, n: g.has_edge(n[0], n[1]),
    "has_cycle": lambda g, n: not nx.is_forest(g),
    "is_bipartite": lambda g, n: nx.is_bipartite(g),
    "is_connected": lambda g, n: nx.has_path(g, n[0], n[1]),
    "is_eulerian": lambda g, n: nx.is_eulerian(g),
    "is_regular": lambda g, n: nx.is_regular(g),
    "is_tournament": lambda g, n: nx.is_tournament(g),
}

SETS = {
    "barycenter": lambda g, n: set(nx.barycenter(g)),
    "center": lambda g, n: by_distance(g, min),
    "common_neighbors": lambda g, n: set(nx.common_neighbors(g, n[0], n[1])),
    "neighbors": lambda g, n: set(g[n[0]]),
    "periphery": lambda g, n: by_distance(g, max),
}


def is_right_of_many(family, graph, question, solution):
    nodes, edges, asked = numbers(solution), pairs(solution), asked_nodes(question)
    weight = lambda path: nx.path_weight(graph, path, "weight")
    match family:
        case "bridges":
            return edge_set(edges) == edge_set(nx.bridges(graph))
        case "bfs" | "dfs":
            return nodes[0] == asked[0] and len(nodes) == len(graph) and is_search(graph, nodes, family == "bfs")
        case "bipartite_matching":
            best = len(nx.max_weight_matching(graph, maxcardinality=True))
            return bipartite.is_bipartite(graph) and nx.is_matching(graph, set(edges)) and len(edges) == best
        case "edge_cover":
            return nx.is_edge_cover(graph, set(edges)) and len(edges) == len(edge_set(nx.min_edge_cover(graph)))
        case "vertex_cover":
            return is_covering(graph, set(nodes)) and len(nodes) == by_set(graph, lambda it: is_covering(graph, it))
        case "dominating_set":
            return is_dominating(graph, set(nodes)) and len(nodes) == by_set(graph, lambda it: is_dominating(graph, it))
        case "independent_set":
            return not graph.subgraph(nodes).edges and is_dominating(graph, set(nodes))
        case "hamiltonian_path":
            return sorted(nodes) == list(graph) and nx.is_path(graph, nodes)
        case "topological_sort":
            place = {node: number for number, node in enumerate(nodes)}
            return sorted(nodes) == list(graph) and all(place[a] < place[b] for a, b in graph.edges)
        case "shortest_path":
            best = nx.dijkstra_path_length(graph, asked[0], asked[1])
            return (nodes[0], nodes[-1]) == tuple(asked[:2]) and weight(nodes) == best
        case "only_way":
            return list(nx.all_simple_paths(graph, asked[0], asked[1])) == [nodes]
        case "spanning_tree":
            tree = nx.Graph(edges)
            best = nx.minimum_spanning_tree(graph).size("weight")
            found = sum(graph[a][b]["weight"] for a, b in edges)
            return len(tree) == len(graph) and nx.is_tree(tree) and found == best
        case "isomorphism":
            other = graph_of(question[question.index("second one: ") + len("second one: "):])
            return edge_set((nodes[a], nodes[b]) for a, b in graph.edges) == edge_set(other.edges)
    raise ValueError(f"no check of `{family}`")


def is_right(problem):
    family, question, solution = problem["family"], problem["question"], problem["solution"]
    graph, asked = graph_of(question), asked_nodes(question)
    if family in NUMBERS:
        return abs(NUMBERS[family](graph, asked) - float(solution)) <= TOLERANCE
    if family in TRUTHS:
        return TRUTHS[family](graph, asked) == (solution == "yes")
    if family in SETS:
        return SETS[family](graph, asked) == set(numbers(solution))
    return is_right_of_many(family, graph, question, solution)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems")
    arguments = parser.parse_args()
    counts, wrong = collections.Counter(), 0
    with open(arguments.problems) as file:
        for line in file:
            problem = json.loads(line)
            counts[problem["family"]] += 1
            if not is_right(problem):
                wrong += 1
                print(json.dumps(problem))
    print(f"{sum(counts.values())} problems of {len(counts)} families: {wrong} differences")
    raise SystemExit(wrong > 0)


main()
