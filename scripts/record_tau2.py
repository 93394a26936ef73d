#!/usr/bin/env python3
"""Records what tau2-bench itself does, in the form that `spar conformance tau2` compares.

    python scripts/record_tau2.py REFERENCE DOMAIN OUT [--tasks 1] [--sequences 200] [--length 25] [--seed 7]

REFERENCE is a checkout of tau2-bench (with `src` and `data`), OUT a folder in which `DOMAIN/traces.jsonl` and
`DOMAIN/fuzz.jsonl` are written. TAU2_DATA_DIR names other data than the checkout's. The interpreter needs what tau2-bench needs.

Traces: for every task the gold calls, perturbed calls, answers, hashes and rewards; with `--tasks N` further N-1 rounds of other
perturbations, with criteria of the reward mixed anew. Fuzz: calls at random over ids that exist, in states that they lead to, one in
three with arguments of wrong shapes. Each trace runs in a process of its own, and twice, with other random ids; what differs is marked.
"""

import argparse
import copy
import importlib
import json
import os
import random
import sys
import types
import uuid
import warnings

HOSTILE = [
    None, True, False, 0, 1, -1, 2, 12, 12.0, 12.5, -0.0, 1e16, 1e-7, 1.5e300, 10**15, 2**53 + 1, 2**63 - 1, -(2**63), 2**63,
    "", " ", "0", "1", "12", " 12 ", "12.0", "12.50", "1_000", "_1", "1__0", "+5", "-3", "1e3", "0x10", "١٢", "nan", "inf", "-Infinity", ".5", "5.",
    "true", "False", "yes", "no", "on", "OFF", "None", "null", "abc", "é", "日本語", "😀", "İSTANBUL", "ß", "it's", 'say "hi"', "it's \"both\"", "a\nb\tc\r",
    "\\", "\x00", "\x7f\x85\u200b", "x" * 49, "y" * 50, "z" * 51, "é" * 40, "😀" * 20, "'" * 60, "a" * 24 + "日本" + "b" * 24, "x" * 3000,
    "2025-02-25", "2024-05-16", "2024-05-16T10:00:00", "2024-02-30",
    [], [None], ["x"], [1], [True], [[]], ["a", 1, None, 2.5, {"k": "v"}], list(range(40)), {}, {"a": 1}, {"": None}, {"a": {"b": [1, {"c": None}]}},
    [{}], [{"a": 1}], [["x", "y"]], {"self": 1}, "#W0000000", "user_1",
]


def chance(rng, probability):
    return rng.random() < probability


def disturbed_text(rng, text):
    return rng.choice([
        text.upper(), text.lower(), text + " ", " " + text, text[:-1], text[1:], text + "x", text.replace("_", "-"), text.swapcase(), list(text[:4]),
    ])


def disturbed(rng, value, depth=0):
    """A value somewhat like another, wrong in some way."""
    if chance(rng, 0.3) or depth > 3:
        return copy.deepcopy(rng.choice(HOSTILE))
    if chance(rng, 0.15):
        return rng.choice([[value], {"value": value}, [value, value], [[value]], str(value), json.dumps(value)])
    if isinstance(value, bool):
        return rng.choice([int(value), str(value), str(value).lower(), float(value), None])
    if isinstance(value, int):
        return rng.choice([float(value), value + 0.5, str(value), f"{value}.0", -value, value + 1, 0, value * 10**6, bool(value), None])
    if isinstance(value, float):
        return rng.choice([int(value), str(value), -value, value / 3, value * 1e6, value + 0.001, None])
    if isinstance(value, str):
        return disturbed_text(rng, value)
    if isinstance(value, list):
        value = copy.deepcopy(value)
        kind = rng.randrange(7)
        if kind == 0 or not value:
            return value + [copy.deepcopy(rng.choice(HOSTILE))]
        if kind == 1:
            return value + [value[0]]
        if kind == 2:
            return value[:-1]
        if kind == 3:
            return value[::-1]
        if kind == 4:
            return ",".join(map(str, value))
        if kind == 5:
            return {str(at): item for at, item in enumerate(value)}
        at = rng.randrange(len(value))
        value[at] = disturbed(rng, value[at], depth + 1)
        return value
    if isinstance(value, dict):
        value = copy.deepcopy(value)
        kind = rng.randrange(5)
        if kind == 0 or not value:
            value["extra"] = copy.deepcopy(rng.choice(HOSTILE))
            return value
        key = rng.choice(list(value))
        if kind == 1:
            del value[key]
        elif kind == 2:
            value[key + "_x"] = value.pop(key)
        elif kind == 3:
            return [list(item) for item in value.items()]
        else:
            value[key] = disturbed(rng, value[key], depth + 1)
        return value
    return copy.deepcopy(rng.choice(HOSTILE))


def disturb_arguments(rng, arguments):
    arguments = copy.deepcopy(arguments)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind = rng.randrange(10)
        if kind == 0 or not arguments:
            name = rng.choice(["verbose", "self", "tool_name", "requestor", "Order_Id", "id", "naïve", "a b", "", "kwargs"])
            arguments[name] = copy.deepcopy(rng.choice(HOSTILE))
            continue
        name = rng.choice(list(arguments))
        if kind == 1:
            del arguments[name]
        elif kind == 2:
            arguments[name + "_x"] = arguments.pop(name)
        elif kind == 3:
            other = rng.choice(list(arguments))
            arguments[name], arguments[other] = arguments[other], arguments[name]
        else:
            arguments[name] = disturbed(rng, arguments[name])
    if chance(rng, 0.1):
        items = list(arguments.items())
        rng.shuffle(items)
        arguments = dict(items)
    return arguments


def expression(rng):
    if chance(rng, 0.5):
        number = lambda: rng.choice([str(rng.randrange(2000)), f"{rng.uniform(0, 500):.2f}", f"{rng.uniform(0, 9):.3f}", ".5", "3.", "0"])
        text = number()
        for _ in range(rng.randrange(5)):
            blank = rng.choice(["", " "])
            text = f"{text}{blank}{rng.choice(['+', '-', '*', '/', '//', '**' if chance(rng, 0.1) else '+'])}{blank}{number()}"
            if chance(rng, 0.3):
                text = f"({text})"
            if chance(rng, 0.1):
                text = f"-{text}"
    else:
        text = "".join(rng.choice("0123456789+-*/(). 012") for _ in range(rng.randrange(9)))
    if chance(rng, 0.05):
        text = rng.choice(["2 ** 10", "(-8) ** 0.5", "2 ** -1", "10 ** 400", "1e3", "a", "0.0 / 0", "7 // 0", "(1, 2)", "...", "()", "1(2)", "0 ** -1", "0.0 ** -2", "7 - - 7", "00", "007", "1_0", "1.5 // .2", "2.675 * 1", "-7 // 2", "5 .5"])
    # What would compute for ever is left out.
    return text if text.count("**") < 2 and "***" not in text and not any(len(part.strip(" (-").split(" ")[0]) > 4 for part in text.split("**")[1:]) else "2 ** 3"


class Retail:
    def __init__(self, env):
        self.db = env.tools.db
        self.seen = []

    def order(self, rng, statuses):
        if self.seen and chance(rng, 0.5):
            return self.db.orders[rng.choice(self.seen)]
        pool = [order for order in self.db.orders.values() if order.status in statuses or chance(rng, 0.05)]
        order = rng.choice(pool)
        self.seen.append(order.order_id)
        return order

    def payment(self, rng, order):
        user = self.db.users[order.user_id]
        if chance(rng, 0.1):
            user = rng.choice(list(self.db.users.values()))
        if order.payment_history and chance(rng, 0.3):
            return order.payment_history[0].payment_method_id
        return rng.choice(list(user.payment_methods) or ["gift_card_0000000"])

    def address(self, rng):
        address = rng.choice(list(self.db.users.values())).address
        return {name: getattr(address, name) for name in ["address1", "address2", "city", "state", "country", "zip"]}

    def items(self, rng, order):
        items = [item.item_id for item in order.items]
        chosen = rng.sample(items, rng.randint(1, len(items))) if items else []
        if chosen and chance(rng, 0.1):
            chosen.append(chosen[0])
        return chosen

    def new_items(self, rng, order, items):
        new = []
        for item_id in items:
            item = next((item for item in order.items if item.item_id == item_id), None)
            if item is None or item.product_id not in self.db.products or chance(rng, 0.05):
                new.append("1008292230")
                continue
            variants = self.db.products[item.product_id].variants
            available = [key for key, variant in variants.items() if variant.available and key != item_id]
            new.append(rng.choice(available if available and chance(rng, 0.85) else list(variants)))
        return new

    def call(self, rng):
        name = rng.choice([
            "cancel_pending_order", "exchange_delivered_order_items", "modify_pending_order_address", "modify_pending_order_items",
            "modify_pending_order_payment", "return_delivered_order_items", "modify_user_address", "calculate", "find_user_id_by_name_zip",
            "find_user_id_by_email", "get_order_details", "get_product_details", "get_item_details", "get_user_details", "list_all_product_types",
            "transfer_to_human_agents", "cancel_pending_order", "exchange_delivered_order_items", "modify_pending_order_items",
            "modify_pending_order_payment", "return_delivered_order_items",
        ])
        pending, delivered = ["pending", "pending (item modified)"], ["delivered"]
        user = rng.choice(list(self.db.users.values()))
        if name == "cancel_pending_order":
            reason = rng.choice(["no longer needed", "ordered by mistake", "no longer needed", "changed my mind"])
            arguments = {"order_id": self.order(rng, pending).order_id, "reason": reason}
        elif name in ["exchange_delivered_order_items", "modify_pending_order_items"]:
            order = self.order(rng, delivered if name.startswith("exchange") else pending)
            items = self.items(rng, order)
            arguments = {"order_id": order.order_id, "item_ids": items, "new_item_ids": self.new_items(rng, order, items), "payment_method_id": self.payment(rng, order)}
        elif name == "modify_pending_order_address":
            arguments = {"order_id": self.order(rng, pending).order_id, **self.address(rng)}
        elif name == "modify_pending_order_payment":
            order = self.order(rng, pending)
            payment = self.payment(rng, order)
            if chance(rng, 0.7):
                used = [it.payment_method_id for it in order.payment_history]
                payment = next((key for key in self.db.users[order.user_id].payment_methods if key not in used), payment)
            arguments = {"order_id": order.order_id, "payment_method_id": payment}
        elif name == "return_delivered_order_items":
            order = self.order(rng, delivered)
            arguments = {"order_id": order.order_id, "item_ids": self.items(rng, order), "payment_method_id": self.payment(rng, order)}
        elif name == "modify_user_address":
            arguments = {"user_id": user.user_id, **self.address(rng)}
        elif name == "calculate":
            arguments = {"expression": expression(rng)}
        elif name == "find_user_id_by_name_zip":
            arguments = {"first_name": user.name.first_name, "last_name": user.name.last_name, "zip": user.address.zip}
            if chance(rng, 0.3):
                arguments["first_name"] = arguments["first_name"].upper()
        elif name == "find_user_id_by_email":
            arguments = {"email": rng.choice([user.email, user.email.upper(), user.email.title()])}
        elif name == "get_order_details":
            arguments = {"order_id": self.order(rng, pending + delivered).order_id}
        elif name == "get_product_details":
            arguments = {"product_id": rng.choice(list(self.db.products))}
        elif name == "get_item_details":
            arguments = {"item_id": rng.choice(list(rng.choice(list(self.db.products.values())).variants))}
        elif name == "get_user_details":
            user_id = self.db.orders[rng.choice(self.seen)].user_id if self.seen else user.user_id
            arguments = {"user_id": user_id}
        elif name == "list_all_product_types":
            arguments = {}
        else:
            arguments = {"summary": "The user wants what cannot be done."}
        return "assistant", name, arguments


class Airline:
    def __init__(self, env):
        self.db = env.tools.db
        self.seen = []
        self.dates = ["2024-05-16", "2024-05-17", "2024-05-18", "2024-05-20", "2024-05-22", "2024-05-24", "2024-05-26", "2024-05-30"]

    def reservation(self, rng):
        if self.seen and chance(rng, 0.6):
            return self.db.reservations.get(rng.choice(self.seen)) or rng.choice(list(self.db.reservations.values()))
        reservation = rng.choice(list(self.db.reservations.values()))
        self.seen.append(reservation.reservation_id)
        return reservation

    def flight(self, rng):
        flight = rng.choice(list(self.db.flights.values()))
        return {"flight_number": flight.flight_number, "date": rng.choice(self.dates if chance(rng, 0.9) else list(flight.dates))}

    def data(self, flight):
        found = self.db.flights.get(flight["flight_number"])
        return found and found.dates.get(flight["date"])

    def passengers(self, rng, count):
        pool = [passenger for user in rng.sample(list(self.db.users.values()), min(5, len(self.db.users))) for passenger in user.saved_passengers]
        return [{"first_name": it.first_name, "last_name": it.last_name, "dob": it.dob} for it in (rng.choice(pool) for _ in range(count))]

    def call(self, rng):
        name = rng.choice([
            "book_reservation", "book_reservation", "book_reservation", "calculate", "cancel_reservation", "get_reservation_details", "get_user_details",
            "list_all_airports", "search_direct_flight", "search_onestop_flight", "send_certificate", "transfer_to_human_agents",
            "update_reservation_baggages", "update_reservation_baggages", "update_reservation_flights", "update_reservation_flights",
            "update_reservation_flights", "update_reservation_passengers", "get_flight_status",
        ])
        users = self.db.users
        cabin = rng.choice(["basic_economy", "economy", "business"])
        if name == "book_reservation":
            user = rng.choice(list(users.values()))
            flights = [self.flight(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
            passengers = self.passengers(rng, rng.choice([1, 1, 2, 3]))
            bags, insurance = rng.choice([0, 0, 1, 2]), rng.choice(["yes", "no"])
            total = (30 * len(passengers) if insurance == "yes" else 0) + 50 * bags
            for flight in flights:
                data = self.data(flight)
                if data is not None and data.status == "available":
                    total += data.prices[cabin] * len(passengers)
            methods = list(user.payment_methods.values())
            rng.shuffle(methods)
            payments = []
            for method in methods[: rng.choice([1, 1, 2, 3])]:
                amount = total
                if method.source != "credit_card" and chance(rng, 0.9):
                    amount = min(total, int(method.amount))
                payments.append({"payment_id": method.id, "amount": amount})
                total -= amount
            if payments and total and chance(rng, 0.8):
                payments[-1]["amount"] += total
            arguments = {
                "user_id": user.user_id, "origin": rng.choice(["JFK", "SFO"]), "destination": rng.choice(["LAX", "ORD"]),
                "flight_type": rng.choice(["one_way", "round_trip"]), "cabin": cabin, "flights": flights, "passengers": passengers,
                "payment_methods": payments, "total_baggages": bags + rng.choice([0, 1]), "nonfree_baggages": bags, "insurance": insurance,
            }
        elif name == "calculate":
            arguments = {"expression": expression(rng)}
        elif name in ["cancel_reservation", "get_reservation_details"]:
            arguments = {"reservation_id": self.reservation(rng).reservation_id}
        elif name == "get_user_details":
            user_id = self.reservation(rng).user_id if chance(rng, 0.7) else rng.choice(list(users))
            arguments = {"user_id": user_id}
        elif name == "list_all_airports":
            arguments = {}
        elif name in ["search_direct_flight", "search_onestop_flight"]:
            flight = rng.choice(list(self.db.flights.values()))
            arguments = {"origin": flight.origin, "destination": flight.destination, "date": rng.choice(self.dates)}
            if name == "search_onestop_flight":
                arguments["destination"] = rng.choice(list(self.db.flights.values())).destination
        elif name == "send_certificate":
            user = self.reservation(rng).user_id if chance(rng, 0.7) else rng.choice(list(users))
            arguments = {"user_id": user, "amount": rng.choice([50, 100, 150, 300])}
        elif name == "transfer_to_human_agents":
            arguments = {"summary": "The user wants what cannot be done."}
        elif name == "get_flight_status":
            flight = rng.choice(list(self.db.flights.values()))
            arguments = {"flight_number": flight.flight_number, "date": rng.choice(list(flight.dates))}
        else:
            reservation = self.reservation(rng)
            methods = users[reservation.user_id].payment_methods if reservation.user_id in users else {}
            payment = rng.choice(list(methods) or ["credit_card_0"])
            if name == "update_reservation_baggages":
                arguments = {"reservation_id": reservation.reservation_id, "total_baggages": rng.randrange(6), "nonfree_baggages": rng.randrange(4), "payment_id": payment}
            elif name == "update_reservation_flights":
                flights = [{"flight_number": it.flight_number, "date": it.date} for it in reservation.flights]
                for at in range(len(flights)):
                    if chance(rng, 0.4):
                        flights[at] = self.flight(rng)
                if chance(rng, 0.5):
                    cabin = reservation.cabin
                arguments = {"reservation_id": reservation.reservation_id, "cabin": cabin, "flights": flights, "payment_id": payment}
            else:
                arguments = {"reservation_id": reservation.reservation_id, "passengers": self.passengers(rng, len(reservation.passengers) + rng.choice([0, 0, 0, 1]))}
        return "assistant", name, arguments


class Telecom:
    def __init__(self, env):
        self.env = env
        self.db = env.tools.db
        self.user = env.user_tools

    def call(self, rng):
        if chance(rng, 0.5):
            return self.user_call(rng)
        customer = rng.choice(self.db.customers)
        if chance(rng, 0.5):
            customer = self.db.customers[0]
        line = rng.choice(customer.line_ids or ["L1001"])
        if chance(rng, 0.05):
            line = rng.choice(self.db.lines).line_id
        both = {"customer_id": customer.customer_id, "line_id": line}
        name = rng.choice([
            "get_customer_by_phone", "get_customer_by_id", "get_customer_by_name", "get_details_by_id", "suspend_line", "resume_line",
            "get_bills_for_customer", "send_payment_request", "get_data_usage", "enable_roaming", "disable_roaming", "transfer_to_human_agents",
            "refuel_data", "refuel_data",
        ])
        if name == "get_customer_by_phone":
            arguments = {"phone_number": rng.choice([customer.phone_number, rng.choice(self.db.lines).phone_number])}
        elif name == "get_customer_by_id":
            arguments = {"customer_id": customer.customer_id}
        elif name == "get_customer_by_name":
            arguments = {"full_name": customer.full_name, "dob": str(customer.date_of_birth)}
        elif name == "get_details_by_id":
            ids = [it.line_id for it in self.db.lines] + [it.device_id for it in self.db.devices] + [it.bill_id for it in self.db.bills]
            ids += [it.customer_id for it in self.db.customers] + [it.plan_id for it in self.db.plans]
            arguments = {"id": rng.choice(ids)}
        elif name == "suspend_line":
            arguments = {**both, "reason": "vacation"}
        elif name == "get_bills_for_customer":
            arguments = {"customer_id": customer.customer_id}
            if chance(rng, 0.5):
                arguments["limit"] = rng.choice([0, 1, 2, 3, -1, 12])
        elif name == "send_payment_request":
            arguments = {"customer_id": customer.customer_id, "bill_id": rng.choice(customer.bill_ids or ["B1001"])}
        elif name == "refuel_data":
            arguments = {**both, "gb_amount": rng.choice([1, 2.0, 0.5, 2.5, 1.337, 3, 0, 0.1])}
        elif name == "transfer_to_human_agents":
            arguments = {"summary": "The user wants what cannot be done."}
        else:
            arguments = both
        return "assistant", name, arguments

    def user_call(self, rng):
        name = rng.choice(list(self.user.get_tools()))
        apps = ["messaging", "browser", "maps", "Messaging"]
        if name == "set_network_mode_preference":
            arguments = {"mode": rng.choice(["4g_5g_preferred", "4g_only", "3g_only", "2g_only", "4g_only", "5g_only"])}
        elif name == "set_apn_settings":
            fields = {"apn_name": ["internet", "broken", "ims"], "reset_at_reboot": [True, False, "yes", 1], "mms_apn": ["mms", None, ""], "mmsc_url": ["http://m", None, ""], "mms_proxy": [None, "p"], "mms_port": [None, 80, "8080", 80.0]}
            arguments = {"apn_settings": {key: rng.choice(values) for key, values in fields.items() if chance(rng, 0.4)}}
        elif name in ["check_app_status", "check_app_permissions"]:
            arguments = {"app_name": rng.choice(apps)}
        elif name == "grant_app_permission":
            arguments = {"app_name": rng.choice(apps), "permission": rng.choice(["sms", "storage", "phone", "network", "SMS", "camera"])}
        else:
            arguments = {}
        return "user", name, arguments


class Mock:
    def __init__(self, env):
        self.env = env

    def call(self, rng):
        tasks = list(self.env.tools.db.tasks) + ["task_9"]
        users = list(self.env.tools.db.users) + ["user_9"]
        notes = list(getattr(self.env.user_tools.db, "notifications", {})) + ["n9"]
        return rng.choice([
            ("assistant", "create_task", {"user_id": rng.choice(users), "title": "Pay", **({"description": "now"} if chance(rng, 0.5) else {})}),
            ("assistant", "get_users", {}),
            ("assistant", "update_task_status", {"task_id": rng.choice(tasks), "status": rng.choice(["pending", "completed", "done"])}),
            ("assistant", "transfer_to_human_agents", {"summary": "s"}),
            ("user", "check_notifications", {}),
            ("user", "dismiss_notification", {"notification_id": rng.choice(notes)}),
        ])


PLAYERS = {"retail": Retail, "airline": Airline, "telecom": Telecom, "mock": Mock}


class Recorder:
    def __init__(self, domain):
        environment = importlib.import_module(f"tau2.domains.{domain}.environment")
        self.domain = domain
        self.build = environment.get_environment
        self.tasks = environment.get_tasks(None)
        # Databases that no one has touched; a process of its own uses them up, and with it they are gone.
        self.fresh = []
        if domain in ["retail", "airline"]:
            self.fresh = [self.build().tools.db for _ in range(16)]

    def env(self, solo_mode=False):
        return self.build(db=self.fresh.pop()) if self.fresh else self.build(solo_mode=solo_mode)

    def start(self, task):
        env = self.env()
        state = task.initial_state
        if state is not None:
            env.set_state(
                initialization_data=state.initialization_data,
                initialization_actions=state.initialization_actions,
                message_history=state.message_history or [],
            )
        return env

    def respond(self, env, at, requestor, name, arguments, has_hash, **more):
        from tau2.data_model.message import ToolCall

        kept = copy.deepcopy(arguments)
        answered = env.get_response(ToolCall(id=str(at), name=name, arguments=arguments, requestor=requestor))
        row = {**more, "requestor": requestor, "name": name, "arguments": kept, "output": answered.content, "error": answered.error}
        if has_hash:
            row["db_hash"] = env.get_db_hash()
            if env.get_user_db_hash() is not None:
                row["user_db_hash"] = env.get_user_db_hash()
        return row

    def disturbed_calls(self, rng, calls):
        kept = []
        for requestor, name, arguments in calls:
            kind = rng.choice(["keep", "keep", "disturb", "drop", "repeat", "unknown_tool", "other_side", "disturb"])
            if kind == "drop":
                continue
            if kind == "unknown_tool":
                name += "_v2"
            if kind == "other_side":
                requestor = {"user": "assistant", "assistant": "user"}[requestor]
            if kind == "disturb":
                arguments = disturb_arguments(rng, arguments)
            kept += [(kind, requestor, name, arguments)] * (2 if kind == "repeat" else 1)
        if chance(rng, 0.2):
            rng.shuffle(kept)
        return kept

    def mixed_criteria(self, rng, task):
        """Other criteria over the same calls."""
        criteria = task.evaluation_criteria
        basis = rng.sample(["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE"], rng.randint(1, 4))
        dump = criteria.model_dump(mode="json")
        dump["reward_basis"] = basis
        if dump["actions"]:
            for action in dump["actions"]:
                if chance(rng, 0.4):
                    action["compare_args"] = rng.choice([[], list(action["arguments"])[:1], list(action["arguments"]), ["nothing"]])
            if chance(rng, 0.3):
                rng.shuffle(dump["actions"])
            if chance(rng, 0.2):
                dump["actions"] = dump["actions"][:-1]
        if chance(rng, 0.1):
            dump["actions"] = None
        for assertion in dump["env_assertions"] or []:
            if chance(rng, 0.3):
                assertion["assert_value"] = not assertion["assert_value"]
        if chance(rng, 0.5):
            dump["communicate_info"] = rng.choice([None, [], ["10"], ["1,628", "Ünï"], ["  "], [""], ["ß", "İ"]])
        return dump

    def reward(self, task, calls, texts, solo_mode, dropped=None):
        from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage
        from tau2.evaluator.evaluator_action import ActionEvaluator
        from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
        from tau2.evaluator.evaluator_env import EnvironmentEvaluator

        state = task.initial_state
        messages = list((state.message_history if state is not None else None) or [])
        if solo_mode:
            messages = [message for message in messages if not isinstance(message, UserMessage)]
        env = self.env(solo_mode)
        if state is not None:
            env.set_state(state.initialization_data, state.initialization_actions, list(messages))
        for at, (requestor, name, arguments) in enumerate(calls):
            if at == dropped:
                continue
            requestor = "assistant" if solo_mode else requestor
            call = ToolCall(id=str(at), name=name, arguments=copy.deepcopy(arguments), requestor=requestor)
            kind = AssistantMessage if requestor == "assistant" else UserMessage
            messages.append(kind(role=requestor, tool_calls=[call.model_copy(deep=True)]))
            messages.append(env.get_response(call))
        messages += [AssistantMessage(role="assistant", content=text) for text in texts]
        row = {}
        try:
            info = EnvironmentEvaluator.calculate_reward(lambda solo_mode=False: self.env(solo_mode), task, messages, solo_mode)
            row["env_reward"] = info.reward
            if info.db_check is not None:
                row["db_match"] = info.db_check.db_match
            row["env_assertions_met"] = [check.met for check in info.env_assertions or []]
            row["breakdown"] = {part.value: value for part, value in (info.reward_breakdown or {}).items()}
        except Exception as error:
            row["env_exception"] = f"{type(error).__name__}: {error}"[:300]
        info = ActionEvaluator.calculate_reward(task, messages)
        row["action_reward"] = info.reward
        row["action_matches"] = [check.action_match for check in info.action_checks or []]
        row["communicate_reward"] = CommunicateEvaluator.calculate_reward(task, messages).reward
        if dropped is not None:
            row["dropped_index"] = dropped
        return row

    def trace(self, rng, task, is_mixed):
        criteria = task.evaluation_criteria
        if is_mixed and criteria is not None:
            task = type(task).model_validate({**task.model_dump(), "evaluation_criteria": self.mixed_criteria(rng, task)})
            criteria = task.evaluation_criteria
        actions = (criteria.actions if criteria is not None else None) or []
        gold = [(action.requestor, action.name, action.arguments) for action in actions]
        row = {"domain": self.domain, "task_id": task.id}
        if criteria is not None:
            row["reward_basis"] = [part.value for part in criteria.reward_basis]
            row["evaluation_criteria"] = criteria.model_dump(mode="json")
        env = self.start(task)
        row["initial_db_hash"], row["initial_user_db_hash"] = env.get_db_hash(), env.get_user_db_hash()
        row["gold"] = [self.respond(env, at, *call, True) for at, call in enumerate(gold)]
        if self.domain == "telecom":
            for key, of in [("probes_before", self.start(task)), ("probes_after_gold", env)]:
                row[key] = []
                for requestor, kit in [("user", of.user_tools), ("assistant", of.tools)]:
                    for name in kit.get_tools():
                        if kit.tool_type(name).value != "read" or requestor == "assistant":
                            continue
                        for app in ["messaging", "browser"] if "app_" in name else [None]:
                            probed = self.respond(of, 0, requestor, name, {} if app is None else {"app_name": app}, False)
                            row[key].append([probed[part] for part in ["requestor", "name", "arguments", "output", "error"]])
        env = self.start(task)
        disturbed_calls = self.disturbed_calls(rng, gold)
        player = PLAYERS[self.domain](env)
        if is_mixed:
            for _ in range(rng.randrange(4)):
                disturbed_calls.insert(rng.randint(0, len(disturbed_calls)), ("random", *player.call(rng)))
        row["perturbed"] = [self.respond(env, at, *call, True, kind=kind) for at, (kind, *call) in enumerate(disturbed_calls)]
        row["rewards"] = {"gold": self.reward(task, gold, [], False), "none": self.reward(task, [], [], False)}
        writes = [at for at, (_, name, _) in enumerate(gold) if env._has_tool(name) and env._is_mutating_tool(name)]
        if writes:
            row["rewards"]["gold_minus_last_write"] = self.reward(task, gold, [], False, writes[-1])
        row["rewards"]["perturbed"] = self.reward(task, [(call[0], call[1], call[2]) for _, *call in disturbed_calls], [], False)
        texts = criteria.communicate_info if criteria is not None else None
        if texts:
            row["rewards"]["gold_plus_text"] = self.reward(task, gold, texts, False)
        if self.domain == "telecom":
            row["rewards"]["gold_solo"] = self.reward(task, gold, [], True)
        return row

    def fuzz(self, rng, number, length):
        has_hashes = self.domain in ["telecom", "mock"] or number % 6 == 0
        actions = None
        if self.domain == "telecom":
            pool = [action for task in self.tasks for action in task.initial_state.initialization_actions]
            if chance(rng, 0.6):
                actions = rng.choice(self.tasks).initial_state.initialization_actions
            else:
                actions = [action for action in pool if action.func_name == "set_user_info"][:1] if chance(rng, 0.9) else []
                actions = actions + rng.sample(pool, rng.randrange(6))
        env = self.env()
        if actions:
            try:
                env.set_state(None, actions, [])
            except Exception:
                return None
        player = PLAYERS[self.domain](env)
        sort = rng.choice(["valid", "valid", "mixed", "mixed", "hostile"])
        calls = []
        for at in range(length):
            try:
                requestor, name, arguments = player.call(rng)
            except Exception:
                # The data have shapes by now in which nothing is found.
                break
            if chance(rng, {"valid": 0.0, "mixed": 0.3, "hostile": 0.7}[sort]):
                kind = rng.randrange(20)
                if kind == 0:
                    name += "_zz"
                elif kind == 1 and self.domain in ["telecom", "mock"]:
                    requestor = {"user": "assistant", "assistant": "user"}[requestor]
                elif kind == 2 and not self.fresh:
                    requestor = "user"
                else:
                    arguments = disturb_arguments(rng, arguments)
            try:
                calls.append(self.respond(env, at, requestor, name, arguments, has_hashes))
            except Exception as error:
                print(f"{self.domain} {number}: the reference raised {type(error).__name__}: {str(error)[:200]}: {name} {str(arguments)[:300]}", file=sys.stderr)
                break
        dump = [action.model_dump(mode="json") for action in actions] if actions else None
        row = {"id": f"fuzz_{self.domain}_{number}", "domain": self.domain, "init_actions": dump, "calls": calls}
        try:
            row["final_db_hash"], row["final_user_db_hash"] = env.get_db_hash(), env.get_user_db_hash()
        except Exception as error:
            print(f"{self.domain} {number}: no hash: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return row


def alone(make):
    """What a function returns in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            with os.fdopen(writer, "w") as out:
                # JSON has no word for what is not finite.
                json.dump(make(), out, allow_nan=False)
            code = 0
        except BaseException as error:
            import traceback
            traceback.print_exc()
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as read:
        text = read.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 and text else None


def twice(make):
    """What a function returns, with marks at what ids at random make differ."""
    def seeded(seed):
        ids = random.Random(seed)
        uuid.uuid4 = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)
        return make()

    row, other = alone(lambda: seeded(1)), alone(lambda: seeded(2))
    if row is None or other is None:
        return None
    if "calls" in row:
        # A call with such an id cannot be made again.
        same = [one["arguments"] == two["arguments"] for one, two in zip(row["calls"], other["calls"])]
        if False in same:
            del row["calls"][same.index(False):]
            row["final_db_hash"] = row["final_user_db_hash"] = None
    for calls in ["gold", "perturbed", "calls"]:
        for one, two in zip(row.get(calls, []), other.get(calls, [])):
            if one["output"] != two["output"]:
                one["nondeterministic"] = True
            if [one.get("db_hash"), one.get("user_db_hash")] != [two.get("db_hash"), two.get("user_db_hash")]:
                one["nondeterministic_hash"] = True
    for key in ["final_db_hash", "final_user_db_hash"]:
        if row.get(key) != other.get(key):
            row[key] = None
    if row.get("rewards") != other.get("rewards"):
        row["rewards"] = {}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("domain", choices=sorted(PLAYERS))
    parser.add_argument("out")
    parser.add_argument("--tasks", type=int, default=1, help="rounds over the tasks; 0: none")
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    os.environ.setdefault("TAU2_DATA_DIR", os.path.join(options.reference, "data"))
    source = os.path.join(options.reference, "src")
    sys.path.insert(0, source)
    # The packages' own __init__ import models, voices and servers, which no domain needs; frames are for reports.
    for name in ["tau2", "tau2.domains", "tau2.environment", "tau2.data_model", "tau2.evaluator", "tau2.orchestrator"]:
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(source, *name.split("."))]
        sys.modules[name] = package
    sys.modules.setdefault("pandas", types.ModuleType("pandas")).DataFrame = object
    warnings.simplefilter("ignore")
    from loguru import logger

    logger.remove()
    recorder = Recorder(options.domain)
    folder = os.path.join(options.out, options.domain)
    os.makedirs(folder, exist_ok=True)
    is_random = options.domain == "telecom"
    record = twice if is_random else alone
    with open(os.path.join(folder, "traces.jsonl"), "w") as out:
        for round in range(options.tasks):
            for task in recorder.tasks:
                rng = lambda: random.Random(f"{options.seed} {options.domain} {round} {task.id}")
                row = record(lambda: recorder.trace(rng(), task, round > 0))
                if row is not None:
                    out.write(json.dumps(row) + "\n")
                    out.flush()
    with open(os.path.join(folder, "fuzz.jsonl"), "w") as out:
        for number in range(options.sequences):
            rng = lambda: random.Random(f"{options.seed} {options.domain} fuzz {number}")
            row = record(lambda: recorder.fuzz(rng(), number, options.length))
            if row is not None:
                out.write(json.dumps(row) + "\n")
                out.flush()


if __name__ == "__main__":
    main()
