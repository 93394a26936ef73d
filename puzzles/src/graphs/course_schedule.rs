//! Courses and what has to be taken before them.

use crate::prelude::*;
use crate::python_set::{PythonSet, tuple_hash};

options! {
    /// Options of `course_schedule`.
    CourseScheduleOptions {
        /// Fewest courses, at least 3. Default 5.
        min_num_courses: i64 = 5,
        /// Most courses, up to 1000. Default 10.
        max_num_courses: i64 = 10,
        /// Fewest prerequisites of a course, at least 1. Default 1.
        min_num_prerequisites: i64 = 1,
        /// Most prerequisites of a course, up to 1000. Default 2.
        max_num_prerequisites: i64 = 2,
        /// Fewest courses of a cycle, at least 3. Default 3.
        min_cycle_length: i64 = 3,
        /// Most courses of a cycle, up to 1000. Default 5.
        max_cycle_length: i64 = 5,
        /// How often all courses can be taken, 0 to 1. Default 0.5.
        p_solvable: f64 = 0.5,
    }
    |given, problems| {
        problems.span(("min_num_courses", "max_num_courses"), (given.min_num_courses, given.max_num_courses), (3, 1_000));
        let prerequisites = (given.min_num_prerequisites, given.max_num_prerequisites);
        problems.span(("min_num_prerequisites", "max_num_prerequisites"), prerequisites, (1, 1_000));
        problems.span(("min_cycle_length", "max_cycle_length"), (given.min_cycle_length, given.max_cycle_length), (3, 1_000));
        problems.between("p_solvable", given.p_solvable, 0.0, 1.0);
    }
}

/// Courses with prerequisites; whether all can be taken is asked.
pub(crate) struct CourseSchedule;

impl Generator for CourseSchedule {
    type Options = CourseScheduleOptions;

    fn item(options: &CourseScheduleOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let count = rng.int(options.min_num_courses, options.max_num_courses)?;
        let mut courses: Vec<u64> = (0..count as u64).collect();
        rng.shuffle(&mut courses);
        let is_solvable = rng.random() < options.p_solvable;
        let mut set = PythonSet::new();
        let mut add =
            |course: u64, before: u64| set.insert(tuple_hash(&[course, before]), (course, before));
        for place in (1..courses.len()).rev() {
            let drawn = rng.int(options.min_num_prerequisites, options.max_num_prerequisites)?;
            let drawn = place.min(drawn as usize);
            for before in rng.sample(&courses[..place], drawn)? {
                add(courses[place], before);
            }
        }
        if !is_solvable {
            let length = rng.int(options.min_cycle_length, options.max_cycle_length)? as usize;
            let cycle = rng.sample(&courses, length.min(courses.len()))?;
            for (place, course) in cycle.iter().enumerate() {
                add(*course, cycle[(place + 1) % cycle.len()]);
            }
        }
        let mut prerequisites: Vec<(u64, u64)> = set.iter().copied().collect();
        rng.shuffle(&mut prerequisites);
        let question = format!(
            "There are a total of {count} courses you have to take, labeled from 0 to {}.\n\nYou are given the following list of prerequisites, where prerequisites[i] = (a_i, b_i) indicates that you must first take course b_i if you want to take course a_i:\n{}\n\nReturn True if you can finish all courses considering the prerequisites, or False otherwise.\n",
            count - 1,
            list(prerequisites.iter().map(|(course, before)| format!("({course}, {before})")))
        );
        let answer = if can_finish(count as usize, &prerequisites) { "True" } else { "False" };
        Ok(Item::new(question, answer))
    }
}

/// Whether there is an order of all courses: those that nothing waits for are taken first.
fn can_finish(count: usize, prerequisites: &[(u64, u64)]) -> bool {
    let mut waiting = vec![0; count];
    let mut then = vec![Vec::new(); count];
    for &(course, before) in prerequisites {
        waiting[course as usize] += 1;
        then[before as usize].push(course as usize);
    }
    let mut ready: Vec<usize> = (0..count).filter(|course| waiting[*course] == 0).collect();
    let mut taken = 0;
    while let Some(course) = ready.pop() {
        taken += 1;
        for &next in &then[course] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    taken == count
}
